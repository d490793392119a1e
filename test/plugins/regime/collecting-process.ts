/**
 * A process that back-fills at START, and waits for ever once it has sent so many requests:
 * `node collecting-process.ts <database file> <addresses as JSON> <requests> <minutes that it begins earlier>`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabase } from '../../../gateway/stores/database.ts'
import { type CollectedOptions, openCollectedMarket, START } from './collected-market.ts'

const FOR_EVER_MS = 2 ** 31 - 1

const [file = '', addresses = '{}', requests = '0', earlier = '0'] = process.argv.slice(2)
let sent = 0
const host = await openCollectedMarket({
  urls: JSON.parse(addresses) as CollectedOptions['urls'],
  db: openDatabase({ file }),
  now: () => START,
  earlierMinutes: Number(earlier),
  fetch: async (url, options) => {
    sent += 1
    if (sent <= Number(requests)) return fetch(url, options)
    process.stdout.write('waiting\n')
    return sleep(FOR_EVER_MS)
  },
})
await host.run('backfill')
process.exit(0)
