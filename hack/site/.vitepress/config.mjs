// How VitePress makes the site: no request to another host, search in the browser, anchors as GitHub makes them.
import {nav, target} from '../nav.mjs';

const link = (file) => '/' + target(file).replace(/(^|(?<=\/))index\.md$/, '').replace(/\.md$/, '');

/** cornersAreCells makes an empty header of a table, its corner, a cell: a screen reader would read a header without a name. */
function cornersAreCells(md) {
  const cell = (tag) => (tokens, i, options, env, self) => {
    const inline = tag === 'open' ? tokens[i + 1] : tokens[i - 1];
    if (inline.type === 'inline' && inline.content === '') tokens[i].tag = 'td';
    return self.renderToken(tokens, i, options);
  };
  md.renderer.rules.th_open = cell('open');
  md.renderer.rules.th_close = cell('close');
}

export default {
  title: 'Shipper',
  description: 'Multi-cluster progressive delivery for Kubernetes',
  lang: 'en',
  head: [['link', {rel: 'icon', type: 'image/svg+xml', href: '/files/docs/pictures/icon.svg'}]],
  srcDir: 'pages',
  outDir: '../../dist/site',
  cleanUrls: false,
  ignoreDeadLinks: [/^\/files\//], // build.mjs has looked for these
  lastUpdated: false,
  markdown: {
    linkify: false, // addresses in the text are examples
    anchor: {slugify: (s) => s.trim().toLowerCase().replace(/[^\p{L}\p{N}\p{M}\- _]/gu, '').replaceAll(' ', '-')},
    // The contrast of these two themes passes WCAG AA.
    theme: {light: 'github-light-high-contrast', dark: 'github-dark-high-contrast'},
    config: cornersAreCells,
  },
  themeConfig: {
    search: {provider: 'local'},
    outline: [2, 3],
    nav: [{text: 'All pages', link: link('docs/index.md')}],
    sidebar: nav.map(([text, links]) => ({text, items: links.map(([name, file]) => ({text: name, link: link(file)}))})),
  },
};
