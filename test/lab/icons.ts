/** `npm run lab -- icons`: renders the preview card and the icons in views/assets from the logo, with Chromium. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { readOptions, root } from './experiment.ts'

readOptions({})
const assets = join(root, 'views', 'assets')
const mark = readFileSync(join(assets, 'favicon.svg'), 'utf8')
const service = JSON.parse(readFileSync(join(root, 'catalog', 'service.json'), 'utf8')) as {
  name: string
  title: string
}

/** The font of the pages, inlined because a page without a URL cannot load files. */
const geist = readFileSync(join(assets, 'fonts', 'geist.woff2')).toString('base64')

const icon = (size: number): string => `<style>svg{display:block;width:${size}px;height:${size}px}</style>${mark}`

const card = `<style>
  @font-face { font-family: Geist; font-weight: 400 700; src: url(data:font/woff2;base64,${geist}) format('woff2') }
  body { display: flex; flex-direction: column; justify-content: space-between; box-sizing: border-box; width: 1200px;
    height: 630px; padding: 84px 88px 0; background: #0d1311; color: #e4ece8; font: 640 80px/1.06 Geist, sans-serif;
    letter-spacing: -0.038em }
  header { display: flex; align-items: center; gap: 24px; font-size: 44px }
  header svg { width: 76px; height: 76px }
  p { max-width: 15em; margin: 0 }
  footer { height: 40px; margin: 0 -88px;
    background: repeating-linear-gradient(115deg, #e4ece8 0 96px, #d9632f 96px 192px) }
</style>
<header>${mark}${service.name}</header><p>${service.title}</p><footer></footer>`

const pictures = [
  { file: 'card.png', width: 1200, height: 630, html: card, transparent: false },
  { file: 'icon-32.png', width: 32, height: 32, html: icon(32), transparent: true },
  { file: 'icon-180.png', width: 180, height: 180, html: icon(180), transparent: false },
] as const

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] })
for (const { file, width, height, html, transparent } of pictures) {
  const page = await browser.newPage({ viewport: { width, height } })
  await page.setContent(`<!doctype html><style>*{margin:0}</style>${html}`)
  await page.evaluate('document.fonts.ready')
  writeFileSync(join(assets, file), await page.screenshot({ omitBackground: transparent }))
  await page.close()
}
await browser.close()
