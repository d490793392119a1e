/** A process that ingests poll after poll until it is killed: `node killed-process.ts <database file> <polls>`. */
import { openDatabase } from '../../../../gateway/stores/database.ts'
import { rssOf, openTestFeed } from '../test-feed.ts'

const [file = '', count = '0'] = process.argv.slice(2)
const START = Date.UTC(2026, 4, 1)
const feed = await openTestFeed({ time: START, db: openDatabase({ file }) })
process.stdout.write('ready\n')
// Every start begins with the same polls, as a source shows the same items after a restart.
for (let n = 0; n < Number(count); n += 1) {
  feed.time = START + n * 60_000
  const items = [0, 1, 2, 3, 4].map((k) => ({
    key: `${n + k}`,
    text: `Release number ${n + k} about ${'copper and steel '.repeat(((n + k) % 7) + 1)}`,
    at: START + (n + k - 10) * 60_000,
  }))
  await feed.poll('wh.news', rssOf(items.reverse()))
  process.stdout.write(`${n}\n`)
}
process.exit(0)
