/**
 * `npm run lab -- pictures`: starts the service in its own sandbox and takes a screenshot of every page, for phone and desktop,
 * light and dark.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { defer, newFolder, readOptions } from './experiment.ts'
import { openScene } from '../browser/scene/scene.ts'
import { consolePages, pagesOf } from '../browser/scene/pages.ts'

const [outputFolder = join('data', 'pictures'), ...names] = readOptions(
  {},
  '[FOLDER [NAME…]]',
  'FOLDER: where the pictures are written (default data/pictures). NAME: only pages whose names begin with NAME.',
).words
const SCREENS = [
  { screen: 'phone', viewport: { width: 390, height: 844 } },
  { screen: 'desk', viewport: { width: 1280, height: 900 } },
] as const
/** Longer pages are cut off here. */
const MAX_HEIGHT = 12_000

const isWanted = ({ name }: { readonly name: string }): boolean =>
  names.length === 0 || names.some((prefix) => name.startsWith(prefix))

const scene = await openScene(newFolder())
defer(() => scene.close())
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] })
defer(() => browser.close())
mkdirSync(outputFolder, { recursive: true })
const pages = [...(await pagesOf(scene.url, scene.buyer)), ...consolePages(scene.operatorToken)]
for (const { name, path, headers = {} } of pages.filter(isWanted))
  for (const { screen, viewport } of SCREENS)
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await browser.newPage({ viewport, colorScheme, extraHTTPHeaders: headers })
      await page.goto(scene.url + path)
      const height = await page.evaluate<number>('document.documentElement.scrollHeight')
      const clip = { x: 0, y: 0, width: viewport.width, height: Math.min(height, MAX_HEIGHT) }
      await page.screenshot({ path: join(outputFolder, `${name}-${screen}-${colorScheme}.png`), fullPage: true, clip })
      await page.close()
    }
