// A picture whose parts can be pressed: elements with data-edge or data-op, by mouse, Enter or Space.
//
// The picture is drawn in Python (trait `svg`); a press goes there through trait `presses`. Each entry names the part
// and the moment, so that pressing one part twice is two presses, and the last few go along each time: were two of
// them sent while the kernel is busy, the second would else replace the first.

const PART = "[data-edge],[data-op]";
const KEPT = 20; // entries that go along

function nameOf(part) {
  return part.dataset.edge !== undefined ? `edge:${part.dataset.edge}` : `op:${part.dataset.op}`;
}

function render({ model, el }) {
  const frame = document.createElement("div");
  Object.assign(frame.style, { overflow: "auto", maxWidth: "762px", border: "1px solid #d0d7de" });
  Object.assign(frame.style, { borderRadius: "10px", margin: "4px 0", boxSizing: "border-box" });
  // JupyterLab would take Enter and the arrows for itself (the second name: up to version 3).
  frame.setAttribute("data-lm-suppress-shortcuts", "true");
  frame.setAttribute("data-p-suppress-shortcuts", "true");
  el.append(frame);

  let presses = 0;
  // Of each kind one part is a stop for Tab; the arrows lead on from there.
  const stops = { edge: null, op: null };

  const parts = (kind) => [...frame.querySelectorAll(`[data-${kind}]`)];
  const kindOf = (part) => (part.dataset.edge !== undefined ? "edge" : "op");
  const partWithFocus = () => {
    const active = frame.getRootNode().activeElement;
    return active && frame.contains(active) ? active.closest(PART) : null;
  };

  function setStops() {
    for (const kind of ["edge", "op"]) {
      const all = parts(kind);
      const stop = all.find((part) => nameOf(part) === stops[kind]) ?? all[0];
      for (const part of all) part.setAttribute("tabindex", part === stop ? "0" : "-1");
    }
  }

  function draw() {
    const focused = partWithFocus();
    const name = focused && nameOf(focused);
    const ring = focused && focused.matches(":focus-visible");
    const [left, top] = [frame.scrollLeft, frame.scrollTop];
    frame.innerHTML = model.get("svg"); // made by lessons_lib, which escapes every name in it
    frame.querySelector("svg > rect")?.setAttribute("stroke", "none"); // the frame is the card's outline here
    setStops();
    if (name) {
      const again = [...frame.querySelectorAll(PART)].find((part) => nameOf(part) === name);
      again?.focus({ preventScroll: true, focusVisible: ring });
    }
    frame.scrollTo(left, top);
  }

  function press(part) {
    const entry = `${nameOf(part)}:${Date.now()}-${++presses}`;
    model.set("presses", [...model.get("presses"), entry].slice(-KEPT));
    model.save_changes();
  }

  // As one reads: by rows from the top, each from the left.
  function inReadingOrder(kind) {
    const places = new Map(parts(kind).map((part) => [part, part.getBoundingClientRect()]));
    const middle = (part) => places.get(part).top + places.get(part).height / 2;
    return [...places.keys()].sort((a, b) => middle(a) - middle(b) || places.get(a).left - places.get(b).left);
  }

  function move(part, key) {
    const all = inReadingOrder(kindOf(part));
    const place = all.indexOf(part);
    const target = {
      ArrowRight: place + 1,
      ArrowDown: place + 1,
      ArrowLeft: place - 1,
      ArrowUp: place - 1,
      Home: 0,
      End: all.length - 1,
    }[key];
    if (target === undefined) return false;
    const next = all[Math.min(Math.max(target, 0), all.length - 1)];
    next.focus({ focusVisible: true });
    return true;
  }

  const onClick = (event) => {
    const part = event.target.closest(PART);
    if (part) press(part);
  };
  const onKey = (event) => {
    const part = event.target.closest?.(PART);
    if (!part || event.ctrlKey || event.metaKey || event.altKey) return;
    const pressed = event.key === "Enter" || event.key === " ";
    if (pressed && !event.repeat) press(part);
    if (pressed || move(part, event.key)) {
      event.preventDefault(); // no scrolling
      event.stopPropagation();
    }
  };
  const onFocus = (event) => {
    const part = event.target.closest?.(PART);
    if (!part) return;
    stops[kindOf(part)] = nameOf(part);
    setStops();
  };
  const resize = () => (frame.style.maxHeight = `${model.get("height")}px`);

  frame.addEventListener("click", onClick);
  frame.addEventListener("keydown", onKey);
  frame.addEventListener("focusin", onFocus);
  model.on("change:svg", draw);
  model.on("change:height", resize);
  resize();
  draw();
  return () => {
    model.off("change:svg", draw);
    model.off("change:height", resize);
  };
}

export default { render };
