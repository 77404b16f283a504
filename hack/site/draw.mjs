// Draw each NAME.pikchr of a folder as NAME.svg, for light and dark pages, 900 px wide: node draw.mjs FOLDER.
import {createHash} from 'node:crypto';
import {readFileSync, writeFileSync, readdirSync} from 'node:fs';
import pikchr from 'pikchr-wasm';

// Colours of the pictures by name, on a light page and on a dark one.
const palette = {
  ink: ['#1f2937', '#e5e7eb'], paper: ['#ffffff', '#0d1117'],
  blue: ['#2563eb', '#7aa7ff'], bluefill: ['#e8effc', '#17233b'],
  green: ['#15803d', '#5fd38a'], greenfill: ['#e6f4ea', '#12291c'],
  red: ['#b91c1c', '#ff8a80'], redfill: ['#fde8e8', '#3a1618'],
  grey: ['#6b7280', '#9aa4b2'], greyfill: ['#f3f4f6', '#1b212b'],
};
const names = Object.keys(palette);
// pikchr knows numbers only: each colour is a number of its own, replaced by a variable of CSS.
const prelude = names.map((n, i) => `$${n} = ${0x010100 + i}`).join('\n') + '\ncolor = $ink\nfill = -1\n';
const vars = (i) => names.map((n) => `--${n}:${palette[n][i]}`).join(';');
const style = `<style>svg{${vars(0)};background:var(--paper);font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}` +
  `@media(prefers-color-scheme:dark){svg{${vars(1)}}}</style>`;
await pikchr.loadWASM();
const dir = process.argv[2];
for (const file of readdirSync(dir).filter((f) => f.endsWith('.pikchr'))) {
  const source = readFileSync(`${dir}/${file}`, 'utf8');
  const title = source.match(/^# (.*)/)[1];
  let svg = pikchr.render(prelude + source);
  if (!svg.includes('<svg')) throw new Error(`${file}: ${svg}`);
  svg = svg.replace(/rgb\((\d+),(\d+),(\d+)\)/g, (all, r, g, b) => +r === 1 && +g === 1 && names[+b] ? `var(--${names[+b]})` : all);
  const [, w, h] = svg.match(/viewBox="0 0 ([\d.]+) ([\d.]+)"/);
  const wide = 900, high = Math.ceil(h * 900 / w);
  const hash = createHash('sha256').update(source).digest('hex'); // a test compares it: a picture is drawn again after an edit
  svg = svg.replace(/<svg [^>]*>/, `<svg xmlns="http://www.w3.org/2000/svg" width="${wide}" height="${high}" viewBox="0 0 ${w} ${h}" ` +
    `role="img" aria-label="${title}"><title>${title}</title><desc>source: ${hash}</desc>${style}`);
  writeFileSync(`${dir}/${file.replace('.pikchr', '.svg')}`, svg.trim().replace(/\n+/g, '\n') + '\n');
}
