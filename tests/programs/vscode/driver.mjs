// Steers a browser for the tests: a command of JSON a line, an answer of JSON a line. Arguments: the browser's program, and a folder
// with playwright-core in it. What is not on loopback ends at a closed port.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const [program, modules] = process.argv.slice(2);
const { chromium } = createRequire(`${modules}/package.json`)('playwright-core');
const QUIET = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage', '--proxy-server=http://127.0.0.1:9'];
const browser = await chromium.launch({ executablePath: program, headless: true, args: QUIET });
const user = await browser.newContext();
const pages = new Map();

const COMMANDS = {
  async open({ page: name, url, width, height }) {
    const page = await user.newPage();
    await page.setViewportSize({ width, height });
    pages.set(name, page);
    await page.goto(url, { timeout: 120_000 });
  },
  async close({ page: name }) {
    await pages.get(name).close();
    pages.delete(name);
  },
  front: ({ page }) => pages.get(page).bringToFront(),
  evaluate: ({ page, script }) => pages.get(page).evaluate(script),
  click: ({ page, selector, seconds }) => pages.get(page).locator(selector).first().click({ timeout: seconds * 1000 }),
  hover: ({ page, selector }) => pages.get(page).locator(selector).first().hover(),
  wait: ({ page, selector, seconds }) => pages.get(page).locator(selector).first().waitFor({ timeout: seconds * 1000 }),
  gone: ({ page, selector, seconds }) => pages.get(page).locator(selector).first().waitFor({ state: 'detached', timeout: seconds * 1000 }),
  write: ({ page, text }) => pages.get(page).keyboard.insertText(text),
  press: ({ page, key }) => pages.get(page).keyboard.press(key),
  texts: ({ page, selector }) => pages.get(page).locator(selector).allInnerTexts(),
  labels: ({ page, selector }) => pages.get(page).locator(selector).evaluateAll(found => found.map(one => one.getAttribute('aria-label') ?? '')),
  async shot({ page, path, clip }) {
    await pages.get(page).screenshot({ path, ...(clip ? { clip } : {}) });
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, what, ...rest } = JSON.parse(line);
  COMMANDS[what](rest).then(
    value => say({ id, value: value ?? null }),
    error => say({ id, error: String(error).slice(0, 2000) }),
  );
}
await browser.close();

function say(answer) {
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
