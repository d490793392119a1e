/**
 * `npm run lighthouse`: starts the service in its own sandbox and runs Lighthouse for a phone. Prints the scores; exits with
 * 1 if one is below 95. The first run installs Lighthouse into data/lighthouse, because it is too large for a dependency.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { chromium } from 'playwright-core'
import { readFlags } from './command-line.ts'
import { openScene } from './pictures/scene.ts'
import { pagesOf } from './pictures/pages.ts'
import { freePort } from '../gateway/sandbox/anvil.ts'

const USAGE = `Usage: npm run lighthouse [-- PATH…]

  PATH  a page (default: the start page, the price page and a report)`
const { positionals: given } = readFlags(USAGE, { allowPositionals: true })

/** The last release that runs on Node 20. */
const RELEASE = 'lighthouse@12.8.2'
const MINIMUM_SCORE = 95
const HOME = resolve('data', 'lighthouse')
const ENTRY = join(HOME, 'node_modules', 'lighthouse', 'core', 'index.js')

interface LighthouseResult {
  readonly lhr: {
    readonly categories: Readonly<Record<string, { readonly title: string; readonly score: number | null }>>
    readonly audits: Readonly<
      Record<string, { readonly title: string; readonly score: number | null; readonly displayValue?: string }>
    >
  }
}
type Lighthouse = (url: string, flags: object) => Promise<LighthouseResult | undefined>

if (!existsSync(ENTRY)) {
  mkdirSync(HOME, { recursive: true })
  const flags = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts']
  execFileSync('npm', ['install', '--prefix', HOME, ...flags, RELEASE], { stdio: 'inherit' })
}
const { default: lighthouse } = (await import(pathToFileURL(ENTRY).href)) as { default: Lighthouse }

const folder = mkdtempSync(join(tmpdir(), 'lighthouse-'))
const scene = await openScene(folder)
const port = await freePort()
const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', `--remote-debugging-port=${port}`]
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args })
try {
  const pages = await pagesOf(scene.url, scene.buyer)
  const report = pages.find(({ name }) => name === 'report-flawed')?.path ?? ''
  for (const path of given.length > 0 ? given : ['/', '/pricing', report]) await score(path)
} finally {
  await browser.close()
  await scene.close()
  rmSync(folder, { recursive: true, force: true })
}

/** Prints the scores of one page. Skips the SEO score of reports, because reports ask search engines not to index them. */
async function score(path: string): Promise<void> {
  const skipped = path.startsWith('/report/') ? ['seo'] : []
  const onlyCategories = ['performance', 'accessibility', 'best-practices', 'seo'].filter((id) => !skipped.includes(id))
  const result = await lighthouse(scene.url + path, { port, onlyCategories, logLevel: 'error' })
  if (!result) throw new Error(`Lighthouse returned no result for ${path}.`)
  const { categories, audits } = result.lhr
  const scores = Object.values(categories).map(({ title, score: share }) => ({
    title,
    score: Math.round((share ?? 0) * 100),
  }))
  process.stdout.write(`${path}\n  ${scores.map(({ title, score: percent }) => `${title} ${percent}`).join(', ')}\n`)
  const measured = [
    'first-contentful-paint',
    'largest-contentful-paint',
    'total-blocking-time',
    'cumulative-layout-shift',
  ]
  process.stdout.write(`  ${measured.map((id) => `${id} ${audits[id]?.displayValue ?? '–'}`).join(', ')}\n`)
  for (const { title, score: share, displayValue = '' } of Object.values(audits))
    if (share !== null && share < 0.9) process.stdout.write(`  ${share.toFixed(2)} ${title} ${displayValue}\n`)
  if (scores.some(({ score: percent }) => percent < MINIMUM_SCORE)) process.exitCode = 1
}
