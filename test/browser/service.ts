/** The whole service as it is sold, on its sandbox chain, with a short made-up past; and a real browser before it. */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { AxeResults } from 'axe-core'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { openSandboxGateway, type SandboxGateway } from '../support/sandbox.ts'

export const CHROMIUM = '/usr/bin/chromium'
export const hasChromium = (): boolean => existsSync(CHROMIUM)

const root = resolve(import.meta.dirname, '../..')
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const DAY = 86_400_000

interface Document {
  settings: Record<string, unknown>
}

/** The catalog with a past of a few weeks, so that it is made in seconds. */
function shortened(folder: string): string {
  const catalog = join(folder, 'catalog')
  cpSync(join(root, 'catalog'), catalog, { recursive: true })
  const change = (file: string, setting: string, daysAgo: number): void => {
    const path = join(catalog, file)
    const document = JSON.parse(readFileSync(path, 'utf8')) as Document
    document.settings[setting] = `${new Date(Date.now() - daysAgo * DAY).toISOString().slice(0, 10)}T00:00:00Z`
    writeFileSync(path, JSON.stringify(document))
  }
  change('market.json', 'history_start', 16)
  change('regime.json', 'since', 8)
  return catalog
}

export interface Service extends SandboxGateway {
  readonly browser: Browser
  /** A page that tells what it asked for and what it complained of. */
  open(path: string, options?: BrowserContextOptions): Promise<Watched>
}

export interface Watched {
  readonly page: Page
  /** Addresses of other hosts that were asked for. */
  readonly foreign: string[]
  /** Errors and warnings of the console, and of scripts. */
  readonly complaints: string[]
  close(): Promise<void>
}

export async function openService(environment: Readonly<Record<string, string>> = {}): Promise<Service> {
  const folder = mkdtempSync(join(tmpdir(), 'browser-'))
  const gateway = await openSandboxGateway({ CATALOG_DIR: shortened(folder), ...environment })
  const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking']
  const browser = await chromium.launch({ executablePath: CHROMIUM, args })
  return {
    ...gateway,
    browser,
    async open(path, options = {}) {
      const context = await browser.newContext(options)
      const page = await context.newPage()
      const [foreign, complaints]: [string[], string[]] = [[], []]
      page.on('request', (request) => {
        if (!request.url().startsWith(gateway.url) && !request.url().startsWith('data:')) foreign.push(request.url())
      })
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
      })
      page.on('pageerror', (error) => complaints.push(error.message))
      if (path !== '') await page.goto(gateway.url + path)
      return { page, foreign, complaints, close: () => context.close() }
    },
    async close() {
      await browser.close()
      await gateway.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Waits until the service has a past to show. */
export async function hasPast(url: string): Promise<void> {
  for (let turn = 0; turn < 150; turn += 1) {
    if ((await fetch(`${url}/v1/regime/sample`)).ok) return
    await new Promise((wake) => setTimeout(wake, 200))
  }
  throw new Error('the made-up past was not there in time')
}

/** Barriers that axe finds on a page, one line each. */
export async function barriers(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  const { violations } = (await page.evaluate('axe.run()')) as AxeResults
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)
}
