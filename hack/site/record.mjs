// Type lines into a terminal of 100 columns, and print what it shows as an asciicast of version 2. The pauses of commands are cut to a second.
import {spawn} from 'node:child_process';
import {readFileSync} from 'node:fs';

const columns = 100, rows = 26, longest = 1, read = 2.2;
let now = 0;
const event = (text) => console.log(JSON.stringify([Number(now.toFixed(3)), 'o', text]));

/** run runs a line in a terminal, and records what it prints. */
function run(line) {
  return new Promise((done, failed) => {
    const child = spawn('script', ['-qec', `stty cols ${columns} rows ${rows}; ${line}`, '/dev/null'], {stdio: ['ignore', 'pipe', 'inherit']});
    let last = Date.now();
    child.stdout.on('data', (data) => {
      now += Math.min((Date.now() - last) / 1000, longest);
      last = Date.now();
      event(data.toString());
    });
    child.on('error', failed);
    child.on('close', done);
  });
}

console.log(JSON.stringify({version: 2, width: columns, height: rows, env: {TERM: 'xterm-256color'}}));
for (const line of readFileSync(0, 'utf8').trim().split('\n')) {
  event('\x1b[32m$\x1b[0m ');
  for (const letter of line) {
    now += 0.03;
    event(letter);
  }
  now += 0.4;
  event('\r\n');
  await run(line);
  now += read;
}
event('');
