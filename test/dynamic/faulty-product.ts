/** A gateway that sells gold without a break while a faulty product is added and removed. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { buy, json } from '../support/agent.ts'
import { gold, type thing } from '../support/catalog.ts'
import { openLiveGateway, type LiveGateway, root } from './live-gateway.ts'
import { until } from '../support/until.ts'

const DOCUMENTS = readFileSync(join(root, 'catalog/documents.json'), 'utf8')
/** Long enough that a busy machine is not mistaken for an import or set-up that hangs. */
export const SETUP_SECONDS = 2
const FILE = 'x/faulty.json'

export interface GoldShop {
  live: LiveGateway
  /** The outcome of each sale of gold: 200, or what went wrong. */
  readonly sales: (number | string)[]
  /** Adds the fixture with a document that names it, and waits until the gateway has built an edition with both. */
  addProduct(document: ReturnType<typeof thing>): Promise<void>
  /** Removes what `addProduct` added, and waits until the gateway has dropped it. */
  removeProduct(): Promise<void>
}

/** Registers hooks in the current suite. After each test, every sale of gold must have succeeded. */
export function useGoldShop(): GoldShop {
  const knowsProduct = (): boolean =>
    shop.live.gateway.issues.some(({ file }) => file === FILE) ||
    shop.live.gateway.current.catalog.products.some(({ file }) => file === FILE)
  const shop = {
    sales: [],
    async addProduct(document: ReturnType<typeof thing>) {
      shop.live.copyPlugin(document.plugin)
      shop.live.writeCatalog(FILE, document)
      await until(knowsProduct)
    },
    async removeProduct() {
      shop.live.remove('catalog', 'x')
      await until(() => !knowsProduct())
    },
  } as unknown as GoldShop
  const suite = new AbortController()
  let selling: Promise<void>

  async function sell(): Promise<void> {
    const { live, sales } = shop
    while (!suite.signal.aborted) {
      const outcome = await buy(`${live.url}/v1/gold`, live.wallet).then(
        async (answer) => ((await json(answer))['price'] === 1900 ? answer.status : `${answer.status}, wrong`),
        (error: unknown) => String(error),
      )
      sales.push(outcome)
      await new Promise((wake) => setTimeout(wake, 20))
    }
  }

  before(async () => {
    shop.live = await openLiveGateway({
      catalog: { 'documents.json': DOCUMENTS, 'gold.json': gold() },
      plugins: ['gold'],
      overrides: { setupSeconds: SETUP_SECONDS },
    })
    selling = sell()
  })
  afterEach(async () => {
    await shop.removeProduct()
    expect(shop.sales.filter((outcome) => outcome !== 200)).to.deep.equal([])
    expect(shop.sales.length).to.be.greaterThan(0)
  })
  after(async () => {
    suite.abort()
    await selling
    await shop.live.close()
  })
  return shop
}
