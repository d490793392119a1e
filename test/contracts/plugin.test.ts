import type { JobCount } from '../../gateway/editions/jobs.ts'
import type { Facts } from 'tollgate/plugin'
import { callOperation, openTestCatalog, testContract } from 'tollgate/testing'

/** A Monday during US trading hours, after the newest snapshot that a plugin brings along. Fixed, so that no hour matters. */
const now = new Date('2026-11-23T15:30:00Z')
const { edition, close } = await openTestCatalog({ now })
/** `npm test -- --product gold` tests only that product. */
const product = process.env['PRODUCT']

describe(product === undefined ? 'every product of the catalog' : `the product ${product}`, function () {
  this.timeout(300_000)
  before(async () => {
    edition.start()
    while ((await edition.facts().then(isBusy)) || !(await isGraded()))
      await new Promise((wake) => setTimeout(wake, 100))
  })
  after(close)

  testContract(edition, { now, ...(product === undefined ? {} : { product }) })
})

/** Returns true until every job has ended its first run, which generates the sample data. */
function isBusy(facts: Readonly<Record<string, Facts>>): boolean {
  const tested = Object.entries(facts).filter(([id]) => product === undefined || id === product)
  const jobs = tested.flatMap(([, { jobs }]) => Object.values((jobs ?? {}) as Record<string, JobCount>))
  return jobs.some(({ runs }) => runs === 0)
}

/** Returns true once the record of the regimes is there, which the pages show: every minute of the sample is stored then. */
async function isGraded(): Promise<boolean> {
  if (product !== undefined && product !== 'site') return true
  return 'brier' in ((await callOperation(edition, 'getStats', { asOf: now })) as object)
}
