import { forms } from './forms.ts'
import { hostile } from './hostile.ts'
import { keyboard } from './keyboard.ts'
import { search } from './search.ts'
import { hasChromium, openService, type Service } from './service.ts'
import { walk } from './walk.ts'
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

  describe('a page', () => walk(running))
  describe('a search engine', () => search(running))
  describe('the keyboard', () => keyboard(running))
  describe('a form', () => forms(running))
  describe('the wallet', () => wallet(running))
  describe('a hostile input', () => hostile(running))
})
