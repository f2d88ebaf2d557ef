// The console in Chromium (CHROMIUM_PATH): the times of its frames, the CPU of its page, and how long it takes to be of use.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { type Browser, chromium, type Page } from 'playwright-core'
import { cpuSeconds, median, quantile } from '../harness.ts'

const CHROMIUM = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium'
const VIEWPORT = { width: 1280, height: 800 }
const LOADS = 5
const SETTLE_MS = 4_000
const SCROLL_PX = 40
const SCROLL_EVERY_MS = 16

/** Says when the first row stands in the page, from the begin of its navigation. */
const WATCH_FIRST_ROW = `new MutationObserver((_, observer) => {
  if (document.querySelector('.rows .row a') === null) return
  window.firstRowMs = performance.now()
  observer.disconnect()
}).observe(document, { childList: true, subtree: true })`

/** Milliseconds between frames, one after the other. */
const framesOf = (seconds: number): string => `new Promise((resolve) => {
  const times = []
  const frame = (now) => {
    times.push(now)
    if (now - times[0] < ${seconds * 1_000}) requestAnimationFrame(frame)
    else resolve(times.slice(1).map((time, at) => time - times[at]))
  }
  requestAnimationFrame(frame)
})`

/** The processes that a process has started, and theirs. */
function descendants(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean)
  return children.flatMap((child) => [Number(child), ...descendants(Number(child))])
}

/** CPU seconds of the processes that run pages, and of all of the browser's. */
function browserCpu(): { pages: number; all: number } {
  const sum = { pages: 0, all: 0 }
  // The processes of threads of this one are listed too: only Chromium's have a type.
  for (const pid of descendants(process.pid)) {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    if (!command.includes('chrom')) continue
    const seconds = cpuSeconds(pid)
    sum.all += seconds
    if (command.includes('--type=renderer')) sum.pages += seconds
  }
  return sum
}

async function openMarket(browser: Browser, url: string): Promise<Page> {
  const context = await browser.newContext({ viewport: VIEWPORT })
  const page = await context.newPage()
  await page.addInitScript(WATCH_FIRST_ROW)
  await page.goto(url)
  await page.locator('.rows .row').nth(10).waitFor()
  return page
}

/** Each load has a cache of its own, and the server has answered these files before. */
async function interactiveMs(browser: Browser, url: string): Promise<number> {
  const times: number[] = []
  for (let load = 0; load < LOADS; load++) {
    const page = await openMarket(browser, url)
    times.push(await page.evaluate<number>('firstRowMs'))
    await page.context().close()
  }
  return median(times)
}

const summary = (frames: number[]) => {
  frames.sort((a, b) => a - b)
  return { p99Ms: quantile(frames, 0.99), maxMs: frames.at(-1) ?? 0, count: frames.length }
}

/** Scrolls on like a wheel that is turned without a pause. */
async function scroll(page: Page, seconds: number): Promise<void> {
  await page.mouse.move(VIEWPORT.width / 2, VIEWPORT.height / 2)
  const endMs = performance.now() + seconds * 1_000
  while (performance.now() < endMs) {
    await page.mouse.wheel(0, SCROLL_PX)
    await page.waitForTimeout(SCROLL_EVERY_MS)
  }
}

/** Opens the market of a server whose trades go on. Runs on core 1, where the server is not. */
export async function measurePage(url: string, seconds: number): Promise<Record<string, number>> {
  execFileSync('taskset', ['-apc', '1', `${process.pid}`])
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
  try {
    const firstRowMs = await interactiveMs(browser, url)
    const page = await openMarket(browser, url)
    await page.waitForTimeout(SETTLE_MS)
    // Frames are counted apart: to ask for each of them is work too.
    const before = browserCpu()
    await page.waitForTimeout(seconds * 1_000)
    const after = browserCpu()
    const still = summary(await page.evaluate<number[]>(framesOf(seconds)))
    const [scrolled] = await Promise.all([
      page.evaluate<number[]>(framesOf(seconds)).then(summary),
      scroll(page, seconds),
    ])
    return {
      firstRowMs,
      pageShare: (after.pages - before.pages) / seconds,
      browserShare: (after.all - before.all) / seconds,
      frameP99Ms: still.p99Ms,
      frameMaxMs: still.maxMs,
      framesPerSecond: still.count / seconds,
      scrollP99Ms: scrolled.p99Ms,
      scrollMaxMs: scrolled.maxMs,
    }
  } finally {
    await browser.close()
  }
}
