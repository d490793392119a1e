/** Starts the whole service on its sandbox chain, with the data of the first start of its catalog, and a real browser. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BrowserContext, Page } from 'playwright-core'
import { openDatabase } from '../../gateway/stores/database.ts'
import { openReportStore } from '../../plugins/audit/report-store.ts'
import { type PageRequest, pagesOf } from './scene/pages.ts'
import { untilReady } from '../lab/gateway.ts'
import { writeScene } from './scene/scene.ts'
import { auditedReports } from '../plugins/audit-pages/audited-reports.ts'
import { copyFirstStart } from '../support/first-start.ts'
import { openSandboxGateway, type SandboxGateway } from '../support/sandbox.ts'
import { launchChromium } from './chromium.ts'

export interface Service extends SandboxGateway {
  /** Every page of the service, with an address that shows it. */
  readonly pages: readonly PageRequest[]
  /** Opens a new page and records its requests and console errors. An empty path opens none yet. */
  open(path: string, options?: PageOptions): Promise<OpenPage>
  /**
   * As `open`, in a page that visits before it used, without its cookies. Not for tests that change the page itself, with
   * scripts, routes, headers, media or its size.
   */
  visit(path: string, options?: PageOptions): Promise<OpenPage>
}

export interface PageOptions {
  /** True if absent. */
  readonly javaScriptEnabled?: boolean
}

export interface OpenPage {
  readonly page: Page
  /** Requested URLs; those on our own host as paths. */
  readonly requests: string[]
  /** Console errors and warnings, and script errors. */
  readonly consoleErrors: string[]
  close(): Promise<void>
}

export async function openService(): Promise<Service> {
  const folder = mkdtempSync(join(tmpdir(), 'browser-'))
  const data = { DATA_DIR: join(folder, 'data') }
  await copyFirstStart(data)
  const gateway = await openSandboxGateway({ ...writeScene(folder), ...data })
  const browser = await launchChromium()
  await untilReady(gateway.url)
  /** A new context opens a window, which costs more than most visits, so pages with the same options share one. */
  const contexts = new Map<boolean, Promise<SharedContext>>()
  const contextFor = ({ javaScriptEnabled = true }: PageOptions = {}): Promise<SharedContext> => {
    const known = contexts.get(javaScriptEnabled)
    if (known) return known
    const made = browser.newContext({ javaScriptEnabled }).then(async (context) => ({
      context,
      idle: [await openPage(context, gateway.url)],
    }))
    contexts.set(javaScriptEnabled, made)
    return made
  }
  return {
    ...gateway,
    pages: [
      ...(await pagesOf(gateway.url, gateway.sandbox.buyer.privateKey)),
      ...(await storeReports(gateway.gateway.config.dataDir)),
    ],
    async open(path, options) {
      const { context } = await contextFor(options)
      const opened = await openPage(context, gateway.url)
      if (path !== '') await opened.page.goto(gateway.url + path)
      return opened
    },
    async visit(path, options) {
      const { context, idle } = await contextFor(options)
      const visited = idle.pop() ?? (await openPage(context, gateway.url))
      const { page, requests, consoleErrors } = visited
      for (const list of [requests, consoleErrors]) list.length = 0
      await page.goto(gateway.url + path)
      return {
        ...visited,
        async close() {
          await page.goto('about:blank')
          await context.clearCookies()
          idle.push(visited)
        },
      }
    },
    async close() {
      await browser.close()
      await gateway.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Stores the reports of audited-reports.ts, as a release stored them, and returns their pages. */
async function storeReports(dataDir: string): Promise<readonly PageRequest[]> {
  const db = openDatabase({ file: join(dataDir, 'products.sqlite') })
  const store = openReportStore(db)
  const reports = Object.entries(await auditedReports())
  for (const [rid, report] of reports) await store.save(rid, new Date(), report, { client: rid })
  await db.destroy()
  return reports.map(([rid]) => ({ name: `report-${rid}`, path: `/report/${rid}`, status: 200 }))
}

interface SharedContext {
  readonly context: BrowserContext
  /** Pages that no visit uses. There is always a page in the context, so that its window stays open. */
  readonly idle: OpenPage[]
}

async function openPage(context: BrowserContext, url: string): Promise<OpenPage> {
  const page = await context.newPage()
  const [requests, consoleErrors]: [string[], string[]] = [[], []]
  page.on('request', (request) => {
    if (!request.url().startsWith('data:')) requests.push(request.url().replace(url, ''))
  })
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && !isStatus(message.text())) consoleErrors.push(message.text())
  })
  page.on('pageerror', (error) => consoleErrors.push(error.message))
  const close = async (): Promise<void> => {
    await page.close()
    await context.clearCookies()
  }
  return { page, requests, consoleErrors, close }
}

/** True for the browser's own message about an error status, which these tests expect. */
const isStatus = (text: string): boolean =>
  text.startsWith('Failed to load resource: the server responded with a status of ')
