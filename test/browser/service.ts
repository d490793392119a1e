/** The whole service as it is sold, on its sandbox chain, with a short made-up past; and a real browser before it. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AxeResults } from 'axe-core'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { type Place, placesOf } from '../../scripts/pictures/places.ts'
import { hasPast, layScene } from '../../scripts/pictures/scene.ts'
import { openSandboxGateway, type SandboxGateway } from '../support/sandbox.ts'

const CHROMIUM = '/usr/bin/chromium'
export const hasChromium = (): boolean => existsSync(CHROMIUM)

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** As short as the start page can be with its chart. */
const DAYS = 4

export interface Service extends SandboxGateway {
  readonly places: readonly Place[]
  /** A page that tells what it asked for and what it complained of. */
  open(path: string, options?: BrowserContextOptions): Promise<Watched>
}

export interface Watched {
  readonly page: Page
  /** Addresses that were asked for, those of our own host as paths. */
  readonly asked: string[]
  /** Errors and warnings of the console, and of scripts. */
  readonly complaints: string[]
  close(): Promise<void>
}

export async function openService(): Promise<Service> {
  const folder = mkdtempSync(join(tmpdir(), 'browser-'))
  const gateway = await openSandboxGateway(layScene(folder, DAYS))
  const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking']
  const browser = await chromium.launch({ executablePath: CHROMIUM, args })
  await hasPast(gateway.url)
  return {
    ...gateway,
    places: await placesOf(gateway.url, gateway.sandbox.buyer.privateKey),
    open: (path, options) => open(browser, gateway.url, path, options),
    async close() {
      await browser.close()
      await gateway.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function open(
  browser: Browser,
  url: string,
  path: string,
  options: BrowserContextOptions = {},
): Promise<Watched> {
  const context = await browser.newContext(options)
  const page = await context.newPage()
  const [asked, complaints]: [string[], string[]] = [[], []]
  page.on('request', (request) => {
    if (!request.url().startsWith('data:')) asked.push(request.url().replace(url, ''))
  })
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && !isStatus(message.text())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  if (path !== '') await page.goto(url + path)
  return { page, asked, complaints, close: () => context.close() }
}

/** The browser's own note of an answer that is a refusal: that it is one is what is looked at. */
const isStatus = (text: string): boolean =>
  text.startsWith('Failed to load resource: the server responded with a status of ')

/** Barriers that axe finds on a page, one line each; of all its rules, or of some. */
export async function barriers(page: Page, ...rules: readonly string[]): Promise<string[]> {
  if (!(await page.evaluate<boolean>("'axe' in globalThis"))) await page.evaluate(axe)
  const options = rules.length === 0 ? {} : { runOnly: { type: 'rule', values: rules } }
  const { violations } = (await page.evaluate(`axe.run(${JSON.stringify(options)})`)) as AxeResults
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
}
