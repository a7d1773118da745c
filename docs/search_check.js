// Results of the site's own search without a browser: node docs/search_check.js SITE QUERY ... prints one JSON object,
// the pages that each query finds.
const fs = require("fs"), path = require("path"), vm = require("vm");

const [site, ...queries] = process.argv.slice(2);
const nothing = () => {};
const page = {
  console, URLSearchParams, _ready: nothing, _: (text) => text, location: { search: "" },
  SPHINX_HIGHLIGHT_ENABLED: false, DOCUMENTATION_OPTIONS: {},
  document: {
    documentElement: { dataset: { content_root: "./" } }, addEventListener: nothing, getElementById: () => null,
  },
};
page.window = page;
vm.createContext(page);
for (const file of ["_static/language_data.js", "_static/searchtools.js", "searchindex.js"]) {
  vm.runInContext(fs.readFileSync(path.join(site, file), "utf8"), page);
}
const found = {};
for (const query of queries) {
  const results = vm.runInContext(`Search._performSearch(...Search._parseQuery(${JSON.stringify(query)}))`, page);
  found[query] = results.map((result) => result[0]);
}
console.log(JSON.stringify(found));
