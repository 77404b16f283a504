// The order of the pages: docs/index.md, which people read on GitHub, is also the sidebar of the site.
import {readFileSync} from 'node:fs';
import {join, posix} from 'node:path';

export const root = join(import.meta.dirname, '../..');

/** nav is the sections of docs/index.md: a heading, and its links as [text, file from the root]. */
export const nav = readFileSync(join(root, 'docs/index.md'), 'utf8').split(/^## /m).slice(1).map((section) => [
  section.slice(0, section.indexOf('\n')),
  [...section.matchAll(/\[([^\]]+)\]\(([^)]+)\)/g)].map(([, text, link]) =>
    [text[0].toUpperCase() + text.slice(1), posix.normalize(`docs/${link}`)]),
]);

/** target is where the site has a Markdown file of the tree. Names of pages differ in more than their case. */
export function target(file) {
  if (file === 'README.md') return 'index.md';
  if (file === 'docs/index.md') return 'pages.md';
  if (!file.includes('/')) return `project/${file.toLowerCase()}`;
  return file.replace(/^docs\//, '').replace(/README\.md$/, 'index.md');
}
