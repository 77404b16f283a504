// Build the documentation site from the Markdown of the tree into dist/site: make site.
import {cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync} from 'node:fs';
import {dirname, join, posix, relative} from 'node:path';
import {build} from 'vitepress';
import {nav, root, target} from './nav.mjs';

const site = import.meta.dirname;
const pages = join(site, 'pages');

/** list returns the files below a folder whose path ends so, as paths from the root. */
function list(folder, end) {
  return readdirSync(join(root, folder), {recursive: true}).map((f) => `${folder}/${f}`).filter((f) => f.endsWith(end)).sort();
}

// A link on GitHub names a file of the tree. On the site, a page is where target says; other files are copied.
const sources = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'SUPPORT.md', 'CHANGELOG.md']
  .filter((f) => existsSync(join(root, f)))
  .concat(list('docs', '.md'), list('examples', '/README.md'));
// docs/index.md is the sidebar, and lists every page.
const listed = nav.flatMap(([, links]) => links.map(([, file]) => file)).concat('docs/index.md');
const missing = sources.filter((f) => f.startsWith('docs/') && !listed.includes(f));
if (missing.length > 0) throw new Error(`docs/index.md does not list ${missing.join(', ')}`);

/** rewrite changes the target of a link of a page to where the site has it. */
function rewrite(file, link) {
  if (/^([a-z]+:|#)/.test(link)) return link;
  const [path, fragment] = link.split('#');
  let to = posix.normalize(posix.join(posix.dirname(file), path)).replace(/\/$/, '');
  if (existsSync(join(root, to)) && statSync(join(root, to)).isDirectory() && existsSync(join(root, to, 'README.md'))) to += '/README.md';
  if (sources.includes(to)) {
    return relative(dirname(target(file)), target(to)).replace(/^(?!\.)/, './') + (fragment ? `#${fragment}` : '');
  }
  if (!existsSync(join(root, to))) throw new Error(`${file}: link to ${link}, which is not in the tree`);
  if (statSync(join(root, to)).isDirectory()) throw new Error(`${file}: link to ${link}, a folder without README.md`);
  return copied(to);
}

/** copied copies a file that is not a page, and returns its path on the site. Without an extension it would be taken for a page. */
function copied(file) {
  const name = /\.[a-z]+$/.test(file) ? file : `${file}.txt`;
  const copy = join(pages, 'public/files', name);
  mkdirSync(dirname(copy), {recursive: true});
  cpSync(join(root, file), copy);
  return `/files/${name}`;
}

rmSync(pages, {recursive: true, force: true});
for (const file of sources) {
  const out = join(pages, target(file));
  mkdirSync(dirname(out), {recursive: true});
  let fenced = false;
  const text = readFileSync(join(root, file), 'utf8').split('\n').map((line) => {
    if (/^ *```/.test(line)) fenced = !fenced;
    return fenced ? line : line.split(/(`+[^`]*`+)/).map((part, i) => i % 2 === 1 ? part : part
      .replace(/(?<=\]\()([^)\s]+)(?=\))/g, (link) => rewrite(file, link))
      .replace(/(?<=(?:src|srcset)=")([^"]+)(?=")/g, (link) => rewrite(file, link))).join('');
  });
  // Braces in the pages are templates of Helm and Go, not of Vue.
  writeFileSync(out, ['::: v-pre', '', ...text, ':::', ''].join('\n'));
}
copied('docs/pictures/icon.svg');
await build(site);
