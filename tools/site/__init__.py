"""The course as a website in dist/site: lessons that run inside the browser, and the same lessons as pages to read."""
