/**
 * `npm run lab -- lighthouse`: starts the service in its own sandbox and runs Lighthouse for a phone. Prints the scores; exits with
 * 1 if one is below 95. The first run installs Lighthouse into data/lighthouse, because it is too large for a dependency.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { chromium } from 'playwright-core'
import { defer, newFolder, readOptions, say } from './experiment.ts'
import { openScene } from '../browser/scene/scene.ts'
import { pagesOf } from '../browser/scene/pages.ts'
import { freePort } from '../../gateway/sandbox/anvil.ts'

const { words: given } = readOptions(
  {},
  '[PATH…]',
  'PATH: a page (default: the start page, the price page and a report)',
)

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

const scene = await openScene(newFolder())
defer(() => scene.close())
const port = await freePort()
const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', `--remote-debugging-port=${port}`]
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args })
defer(() => browser.close())
const pages = await pagesOf(scene.url, scene.buyer)
const report = pages.find(({ name }) => name === 'report-flawed')?.path ?? ''
for (const path of given.length > 0 ? given : ['/', '/pricing', report]) await score(path)

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
  say(`${path}\n  ${scores.map(({ title, score: percent }) => `${title} ${percent}`).join(', ')}`)
  const measured = [
    'first-contentful-paint',
    'largest-contentful-paint',
    'total-blocking-time',
    'cumulative-layout-shift',
  ]
  say(`  ${measured.map((id) => `${id} ${audits[id]?.displayValue ?? '–'}`).join(', ')}`)
  for (const { title, score: share, displayValue = '' } of Object.values(audits))
    if (share !== null && share < 0.9) say(`  ${share.toFixed(2)} ${title} ${displayValue}`)
  if (scores.some(({ score: percent }) => percent < MINIMUM_SCORE)) process.exitCode = 1
}
