import { buying } from './buying.ts'
import { hasChromium } from './chromium.ts'
import { forms } from './forms.ts'
import { hostileInput } from './hostile-input.ts'
import { keyboard } from './keyboard.ts'
import { pageChecks } from './page-checks.ts'
import { searchEngines } from './search-engines.ts'
import { openService, type Service } from './service.ts'
import { wallet } from './wallet.ts'

/** All tests share one browser and one gateway, because starting them takes longer than most tests. */
describe('the pages in a browser', function () {
  this.timeout(300_000)
  let service: Service
  const running = (): Service => service

  before(async function () {
    if (!hasChromium()) this.skip()
    service = await openService()
  })
  after(() => service?.close())

  describe('a page', () => pageChecks(running))
  describe('a search engine', () => searchEngines(running))
  describe('the keyboard', () => keyboard(running))
  describe('a form or button', () => forms(running))
  describe('a browser wallet', () => wallet(running))
  describe('the documentation', () => buying(running))
  describe('a hostile input', () => hostileInput(running))
})
