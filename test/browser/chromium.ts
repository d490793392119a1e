/** Starts the browser. */
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

const CHROMIUM = '/usr/bin/chromium'
/** All pages are of one site, so they can share a process: to start one costs more than to show a page. */
const ONE_PROCESS = ['--renderer-process-limit=1', '--process-per-site', '--disable-site-isolation-trials']

export const hasChromium = (): boolean => existsSync(CHROMIUM)

/** Starts Chromium without a window on the screen. */
export async function launchChromium(): Promise<Browser> {
  const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking']
  return chromium.launch({ executablePath: CHROMIUM, args: [...args, ...ONE_PROCESS] })
}
