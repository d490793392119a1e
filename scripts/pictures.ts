/**
 * `npm run pictures [-- FOLDER [NAME…]]`: opens the service in a sandbox of its own and takes a picture of every page,
 * or of those whose names begin so, on a phone and on a desk, light and dark. FOLDER defaults to data/pictures.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { openScene } from './pictures/open.ts'
import { consolePlaces, placesOf } from './pictures/places.ts'

const [into = join('data', 'pictures'), ...names] = process.argv.slice(2)
const SCREENS = [
  { screen: 'phone', viewport: { width: 390, height: 844 } },
  { screen: 'desk', viewport: { width: 1280, height: 900 } },
] as const
/** More of a page than this is more of the same. */
const MOST_HIGH = 12_000

const folder = mkdtempSync(join(tmpdir(), 'pictures-'))
const scene = await openScene(folder)
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] })
try {
  mkdirSync(into, { recursive: true })
  const places = [...(await placesOf(scene.url, scene.buyer)), ...consolePlaces(scene.operatorToken)]
  for (const { name, path, headers = {} } of places.filter(isWanted))
    for (const { screen, viewport } of SCREENS)
      for (const colorScheme of ['light', 'dark'] as const) {
        const page = await browser.newPage({ viewport, colorScheme, extraHTTPHeaders: headers })
        await page.goto(scene.url + path)
        const high = await page.evaluate<number>('document.documentElement.scrollHeight')
        const clip = { x: 0, y: 0, width: viewport.width, height: Math.min(high, MOST_HIGH) }
        await page.screenshot({ path: join(into, `${name}-${screen}-${colorScheme}.png`), fullPage: true, clip })
        await page.close()
      }
} finally {
  await browser.close()
  await scene.close()
  rmSync(folder, { recursive: true, force: true })
}

function isWanted({ name }: { readonly name: string }): boolean {
  return names.length === 0 || names.some((beginning) => name.startsWith(beginning))
}
