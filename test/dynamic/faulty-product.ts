/** A gateway that sells gold without a break while a faulty product is added and removed. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { buy, json } from '../support/agent.ts'
import { gold, type thing } from '../support/catalog.ts'
import { openLiveGateway, type LiveGateway, root, until } from './live-gateway.ts'

const DOCUMENTS = readFileSync(join(root, 'catalog/documents.json'), 'utf8')
/** Long enough that a busy machine is not mistaken for an import or set-up that hangs. */
export const SETUP_SECONDS = 2
const FILE = 'x/faulty.json'

export interface Bench {
  place: LiveGateway
  /** The outcome of each sale of gold: 200, or what went wrong. */
  readonly sales: (number | string)[]
  /** Adds the fixture with a document that names it, and waits until the gateway has built an edition with both. */
  add(document: ReturnType<typeof thing>): Promise<void>
  remove(): Promise<void>
}

/** Registers hooks in the current suite. After each test, every sale of gold must have succeeded. */
export function useBench(): Bench {
  const knows = (): boolean =>
    bench.place.gateway.issues.some(({ file }) => file === FILE) ||
    bench.place.gateway.current.catalog.products.some(({ file }) => file === FILE)
  const bench = {
    sales: [],
    async add(document: ReturnType<typeof thing>) {
      bench.place.drop(document.plugin)
      bench.place.catalog(FILE, document)
      await until(knows)
    },
    async remove() {
      bench.place.remove('catalog', 'x')
      await until(() => !knows())
    },
  } as unknown as Bench
  const over = new AbortController()
  let selling: Promise<void>

  async function sell(): Promise<void> {
    const { place, sales } = bench
    while (!over.signal.aborted) {
      const outcome = await buy(`${place.url}/v1/gold`, place.wallet).then(
        async (answer) => ((await json(answer))['price'] === 1900 ? answer.status : `${answer.status}, wrong`),
        (error: unknown) => String(error),
      )
      sales.push(outcome)
      await new Promise((wake) => setTimeout(wake, 20))
    }
  }

  before(async () => {
    bench.place = await openLiveGateway({
      catalog: { 'documents.json': DOCUMENTS, 'gold.json': gold() },
      plugins: ['gold'],
      overrides: { setupSeconds: SETUP_SECONDS },
    })
    selling = sell()
  })
  afterEach(async () => {
    await bench.remove()
    expect(bench.sales.filter((outcome) => outcome !== 200)).to.deep.equal([])
    expect(bench.sales.length).to.be.greaterThan(0)
  })
  after(async () => {
    over.abort()
    await selling
    await bench.place.close()
  })
  return bench
}
