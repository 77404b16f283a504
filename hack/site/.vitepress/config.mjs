// How VitePress makes the site: no request to another host, search in the browser, anchors as GitHub makes them.
import {nav, target} from '../nav.mjs';

const link = (file) => '/' + target(file).replace(/(^|(?<=\/))index\.md$/, '').replace(/\.md$/, '');

export default {
  title: 'Shipper',
  description: 'Multi-cluster progressive delivery for Kubernetes',
  lang: 'en',
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
  },
  // {{ }} in the pages are templates of Helm and Go.
  vue: {template: {compilerOptions: {delimiters: ['[[[[', ']]]]']}}},
  themeConfig: {
    search: {provider: 'local'},
    outline: [2, 3],
    nav: [{text: 'All pages', link: link('docs/index.md')}],
    sidebar: nav.map(([text, links]) => ({text, items: links.map(([name, file]) => ({text: name, link: link(file)}))})),
  },
};
