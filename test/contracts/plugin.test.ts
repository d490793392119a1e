import { readConfig } from '../../gateway/config.ts'
import { buildStrictly } from '../../scripts/strict.ts'
import { keepsTheContract } from './plugin.ts'

const MINUTE = 60_000
const now = new Date(Math.floor(Date.now() / MINUTE) * MINUTE)
const { edition, close } = await buildStrictly(readConfig(), () => now)

describe('every product of the catalog', function () {
  this.timeout(120_000)
  before(async () => {
    edition?.start()
    await settled(async () => JSON.stringify(await edition?.facts()))
  })
  after(close)

  keepsTheContract(edition, { now })
})

/** The jobs of a first start make ten months of sample data: resolves once the facts have come to rest. */
async function settled(facts: () => Promise<string>): Promise<void> {
  for (let last = ''; ;) {
    const next = await facts()
    if (next === last) return
    last = next
    await new Promise((wake) => setTimeout(wake, 2_000))
  }
}
