// Check the site in dist/site in headless Chromium: every link and anchor, no request to another host, contrast and the other rules of
// axe-core, no sideways scrolling at 360 px, light and dark: make site-check.
import {createServer} from 'node:http';
import {existsSync, readdirSync, readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {extname, join} from 'node:path';
import puppeteer from 'puppeteer-core';
import {root} from './nav.mjs';

const site = join(root, 'dist/site');
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const types = {'.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json',
  '.woff2': 'font/woff2'};
const faults = [];

const server = createServer((request, response) => {
  const path = join(site, decodeURIComponent(new URL(request.url, 'http://x').pathname).replace(/\/$/, '/index.html'));
  if (!existsSync(path)) return response.writeHead(404).end();
  response.writeHead(200, {'content-type': types[extname(path)] ?? 'text/plain'}).end(readFileSync(path));
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const origin = `http://127.0.0.1:${server.address().port}`;
const pages = readdirSync(site, {recursive: true}).filter((f) => f.endsWith('.html') && f !== '404.html').sort();

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
});
const ids = new Map(), links = [];
try {
  const page = await browser.newPage();
  page.on('request', (r) => { if (!r.url().startsWith(origin) && !r.url().startsWith('data:')) faults.push(`request to ${r.url()}`); });
  page.on('response', (r) => { if (r.status() >= 400) faults.push(`${r.url().replace(origin, '')}: ${r.status()}`); });
  page.on('pageerror', (e) => faults.push(`${page.url().replace(origin, '')}: ${e.message}`));
  for (const [i, name] of pages.entries()) {
    for (const [scheme, width] of [['light', 1280], ['dark', 360]]) {
      await page.setViewport({width, height: 800});
      await page.emulateMediaFeatures([{name: 'prefers-color-scheme', value: scheme}]);
      await page.goto(`${origin}/${name}`, {waitUntil: 'networkidle0'});
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (wide > 0) faults.push(`${name}: ${wide} px too wide at ${width} px`);
      // The reference is long: its rows are alike, and axe takes minutes for them.
      const long = await page.evaluate(() => document.querySelectorAll('td').length > 2000);
      if (!long) {
        await page.evaluate(axe);
        const found = await page.evaluate(() => axe.run(document, {resultTypes: ['violations']}));
        for (const v of found.violations) faults.push(`${name}, ${scheme}: ${v.id}: ${v.help}: ${v.nodes[0].html.slice(0, 120)} (${v.nodes.length})`);
      }
      if (scheme === 'light') {
        ids.set(name, new Set(await page.evaluate(() => [...document.querySelectorAll('[id]')].map((e) => e.id))));
        links.push(...await page.evaluate((from) => [...document.querySelectorAll('a[href]')].map((a) => [from, a.href]), name));
      }
    }
    console.error(`${i + 1} of ${pages.length} pages checked: ${name}`);
  }
  await page.goto(origin, {waitUntil: 'networkidle0'});
  await page.setViewport({width: 1280, height: 800});
  await page.click('.VPNavBarSearch button');
  await page.waitForSelector('.search-input');
  await page.type('.search-input', 'rolloutblock');
  await page.waitForSelector('.results .result', {timeout: 20_000});
} finally {
  await browser.close();
  server.close();
}
for (const [from, link] of links) {
  const url = new URL(link);
  if (url.origin !== origin) continue; // other hosts cannot be asked here
  const name = decodeURIComponent(url.pathname).slice(1).replace(/(^|\/)$/, '$1index.html');
  if (!existsSync(join(site, name))) faults.push(`${from}: link to ${url.pathname}, which does not exist`);
  else if (url.hash && ids.has(name) && !ids.get(name).has(decodeURIComponent(url.hash.slice(1)))) faults.push(`${from}: no ${url.hash} in ${name}`);
}
for (const f of [...new Set(faults)]) console.log(f);
console.error(`${pages.length} pages, ${links.length} links: ${new Set(faults).size} faults`);
process.exit(faults.length > 0 ? 1 : 0);
