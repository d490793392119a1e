/**
 * `npm run lighthouse [-- PATH…]`: starts the service in its own sandbox and runs Lighthouse for a phone on the start
 * page, the price page and a report. Prints the scores; exits with 1 if one is below 95. The first run installs
 * Lighthouse into data/lighthouse, because it is too large for a dependency.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { chromium } from 'playwright-core'
import { openScene } from './pictures/open.ts'
import { placesOf } from './pictures/places.ts'
import { freePort } from '../gateway/sandbox/anvil.ts'

/** The last release that runs on Node 20. */
const RELEASE = 'lighthouse@12.8.2'
const LEAST = 95
const HOME = resolve('data', 'lighthouse')
const ENTRY = join(HOME, 'node_modules', 'lighthouse', 'core', 'index.js')

interface Judged {
  readonly lhr: {
    readonly categories: Readonly<Record<string, { readonly title: string; readonly score: number | null }>>
    readonly audits: Readonly<
      Record<string, { readonly title: string; readonly score: number | null; readonly displayValue?: string }>
    >
  }
}
type Lighthouse = (url: string, flags: object) => Promise<Judged | undefined>

if (!existsSync(ENTRY)) {
  mkdirSync(HOME, { recursive: true })
  const words = ['install', '--prefix', HOME, '--no-save', '--no-audit', '--no-fund', '--ignore-scripts', RELEASE]
  execFileSync('npm', words, { stdio: 'inherit' })
}
const { default: lighthouse } = (await import(pathToFileURL(ENTRY).href)) as { default: Lighthouse }

const folder = mkdtempSync(join(tmpdir(), 'lighthouse-'))
const scene = await openScene(folder)
const port = await freePort()
const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', `--remote-debugging-port=${port}`]
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args })
try {
  const places = await placesOf(scene.url, scene.buyer)
  const report = places.find(({ name }) => name === 'report-flawed')?.path ?? ''
  const given = process.argv.slice(2)
  for (const path of given.length > 0 ? given : ['/', '/pricing', report]) await judge(path)
} finally {
  await browser.close()
  await scene.close()
  rmSync(folder, { recursive: true, force: true })
}

/** Reports ask not to be indexed, so their SEO score does not count. */
async function judge(path: string): Promise<void> {
  const skipped = path.startsWith('/report/') ? ['seo'] : []
  const onlyCategories = ['performance', 'accessibility', 'best-practices', 'seo'].filter((id) => !skipped.includes(id))
  const judged = await lighthouse(scene.url + path, { port, onlyCategories, logLevel: 'error' })
  if (!judged) throw new Error(`${path} was not judged`)
  const { categories, audits } = judged.lhr
  const scores = Object.values(categories).map(({ title, score }) => ({ title, score: Math.round((score ?? 0) * 100) }))
  process.stdout.write(`${path}\n  ${scores.map(({ title, score }) => `${title} ${score}`).join(', ')}\n`)
  const measured = [
    'first-contentful-paint',
    'largest-contentful-paint',
    'total-blocking-time',
    'cumulative-layout-shift',
  ]
  process.stdout.write(`  ${measured.map((id) => `${id} ${audits[id]?.displayValue ?? '–'}`).join(', ')}\n`)
  for (const { title, score, displayValue = '' } of Object.values(audits))
    if (score !== null && score < 0.9) process.stdout.write(`  ${score.toFixed(2)} ${title} ${displayValue}\n`)
  if (scores.some(({ score }) => score < LEAST)) process.exitCode = 1
}
