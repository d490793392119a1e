import { readConfig } from '../../gateway/config.ts'
import { buildStrictly } from '../../scripts/strict.ts'
import { keepsTheContract } from './plugin.ts'

const MINUTE = 60_000
const now = new Date(Math.floor(Date.now() / MINUTE) * MINUTE)
const { edition, close } = await buildStrictly(readConfig(), () => now)

describe('every product of the catalog', () => {
  after(close)

  keepsTheContract(edition, { now })
})
