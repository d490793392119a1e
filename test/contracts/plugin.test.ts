import type { JobCount } from '../../gateway/editions/jobs.ts'
import type { Facts } from '../../gateway/plugin.ts'
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
    while (await edition?.facts().then(isBusy)) await new Promise((wake) => setTimeout(wake, 500))
  })
  after(close)

  keepsTheContract(edition, { now })
})

/** True while some job has not ended its first run: a first start makes ten months of sample data. */
function isBusy(facts: Readonly<Record<string, Facts>>): boolean {
  const jobs = Object.values(facts).flatMap(({ jobs }) => Object.values((jobs ?? {}) as Record<string, JobCount>))
  return jobs.some(({ runs }) => runs === 0)
}
