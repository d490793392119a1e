/** A process that back-fills at START until it is killed: `node collecting-process.ts <database file> <addresses as JSON>`. */
import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabase } from '../../../gateway/stores/database.ts'
import { type CollectedOptions, openCollectedMarket, START } from './collected-market.ts'

const [file = '', addresses = '{}'] = process.argv.slice(2)
const host = await openCollectedMarket({
  urls: JSON.parse(addresses) as CollectedOptions['urls'],
  db: openDatabase({ file }),
  now: () => START,
  fetch: async (url, options) => {
    process.stdout.write('request\n')
    await sleep(20)
    return fetch(url, options)
  },
})
await host.run('backfill')
process.exit(0)
