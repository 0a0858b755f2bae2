"""Make the small Chinese font that plots ship with; not needed at run time.

    pip download --no-deps pylopdf-fonts-zh-cn==0.1.1 && unzip pylopdf_fonts_zh_cn-*.whl
    python -m tools.font_subset pylopdf_fonts_zh_cn/NotoSansSC-Regular.otf

The subset holds every Chinese character of the library, the lessons and the Chinese README, the words below, and
whatever the shipped file holds already: run it again when a label needs a character that is missing (a test names
it). The same inputs give the same bytes.

It is renamed. The OFL does not ask for that, since the source declares no Reserved Font Name; but a font that is
registered as "Noto Sans SC" could stand in for the whole one in a learner's own plots, with most of its characters
missing. Hints and layout features are left out: matplotlib uses neither for these labels.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools import say
from tools.project import ROOT
from tools.say import Stop

FAMILY = "Fusion Lessons SC"
FILE = ROOT / "lessons_lib/show/font/FusionLessonsSC-Regular.otf"

_SOURCE_SHA256 = "faa6c9df652116dde789d351359f3d7e5d2285a2b2a1f04a2d7244df706d5ea9"
_TEXTS = ("lessons_lib/**/*.py", "notebooks/source/*", "README.zh.md")
_HANZI = re.compile(r"[\u3400-\u9fff]")
_SYMBOLS = "，。、；：？！“”‘’（）《》〈〉「」【】—…·　～￥×÷±≤≥≠≈→←↑↓−–µ°℃Ω"

# What labels of plots to come may say: axes, statistics, hardware, models, and everyday connecting words.
_WORDS = """
横轴纵轴坐标刻度对数线性比例直方图散点折线柱状曲线虚线实线箭头图例标注颜色浅深灰蓝橙绿红紫黄黑白上下左右顶底内外
平均值中位数百分位方差标准差误差范围区间置信概率分布样本总数次数频率周期峰值谷底极限阈值上限下限趋势波动噪声异常拟合回归
微秒毫秒纳秒分钟小时天年月字节千兆吉太比特每秒赫兹瓦特温度功耗能耗电压焦耳价格成本
处理器核心线程线程束块网格寄存器缓存一级二级三级共享私有显存主存内存硬盘磁盘带宽延迟吞吐流水线指令周期时钟主频降频预取写回
写分配命中未命中缺失替换对齐合并访存跨步连续随机冲突银行页表向量化并行串行同步异步流队列调度驱动编译器解释器后端前端
矩阵乘加法减除卷积池化归一化激活函数层头注意力查询键嵌入词表序列长度批量大小隐藏维度通道特征图残差损失梯度反向前向传播训练推理
量化精度半单双浮点整数定点舍入截断溢出饱和稀疏稠密掩码权重偏置参数模型专家路由混合推测解码
图节点边依赖拓扑排序分组划分割合法收益盈亏平衡断言条件满足失败通过未检查证据
预测实测猜测测量基线加速比倍数提升下降变慢更快最慢最优最差相同不同不变增加减少超过低于接近之间以内以外
开始结束暂停继续重复预热首次之后之前其中其他全部部分剩余已用可用空闲占用需要允许最多最少至少约等于大于小于
优化器检查点重用驻留搬运搬移装入写出读入读回保存释放分配回收碎片拷贝转置重排广播切片拼接填充补零收集散射归约扫描排名搜索采样
"""


def characters(texts: Iterable[str]) -> set[str]:
    """Every Chinese character of ``texts`` and of the words, printable ASCII, and the course's symbols."""
    chinese = {character for text in (*texts, _WORDS) for character in _HANZI.findall(text)}
    return chinese | {chr(code) for code in range(0x20, 0x7F)} | set(_SYMBOLS)


def course_texts(root: Path = ROOT) -> list[str]:
    """What learners may read in Chinese."""
    return [path.read_text(encoding="utf-8") for pattern in _TEXTS for path in sorted(root.glob(pattern))]


def make(source: Path, target: Path, wanted: set[str]) -> int:
    """Write the subset of ``source`` with the characters ``wanted``; the number of bytes."""
    from fontTools import subset
    from fontTools.ttLib import TTFont

    options = subset.Options()
    options.hinting = False
    options.layout_features = []
    options.drop_tables += ["vhea", "vmtx", "VORG", "BASE", "GSUB", "GPOS", "GDEF", "DSIG"]
    options.notdef_outline = True
    options.name_IDs = [0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 14]  # the copyright and the licence stay
    font = TTFont(source, recalcTimestamp=False)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=sorted(map(ord, wanted)))
    subsetter.subset(font)
    _rename(font)
    target.parent.mkdir(parents=True, exist_ok=True)
    font.save(target)
    return target.stat().st_size


def _rename(font: Any) -> None:
    names = font["name"]
    postscript = FAMILY.replace(" ", "")
    version = f"{names.getDebugName(5)}; subset"
    for identifier, value in (
        (1, FAMILY),
        (3, f"{postscript}-Regular; subset of {names.getDebugName(3)}"),
        (4, FAMILY),
        (5, version),
        (6, f"{postscript}-Regular"),
    ):
        names.removeNames(identifier)
        names.setName(value, identifier, 3, 1, 0x409)
    cff = font["CFF "].cff
    cff.fontNames = [f"{postscript}-Regular"]
    cff.topDictIndex[0].FullName = cff.topDictIndex[0].FamilyName = FAMILY


def held_by(font_file: Path) -> set[str]:
    """The characters of a font file; none if there is no such file."""
    from fontTools.ttLib import TTFont

    return {chr(code) for code in TTFont(font_file).getBestCmap()} if font_file.exists() else set()


def main() -> int:
    """Read the command line, make the font, say how large it is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("source", type=Path, help="NotoSansSC-Regular.otf of pylopdf-fonts-zh-cn 0.1.1")
    source = parser.parse_args().source
    if hashlib.sha256(source.read_bytes()).hexdigest() != _SOURCE_SHA256:
        raise Stop(f"{source} 不是制作子集所用的文件。", f"{source} is not the subset's source.")
    wanted = characters(course_texts()) | held_by(FILE)
    size = make(source, FILE, wanted)
    say.tell(
        f"{FILE.name}：{len(wanted)} 个字符，{size:,} 字节。",
        f"{FILE.name}: {len(wanted)} characters, {size:,} bytes.",
    )
    return 0


if __name__ == "__main__":
    say.run(main)
