/** The depth of harbours, from a CSV file. */
import { readFileSync } from 'node:fs'
import { definePlugin, NotFound } from 'tollgate/plugin'

const [, ...lines] = readFileSync(new URL('./harbours.csv', import.meta.url), 'utf8')
  .trim()
  .split('\n')
const rows = lines.map((line) => {
  const [harbour = '', country = '', depth = ''] = line.split(',')
  return { harbour, country, depth_metres: Number(depth) }
})

export default definePlugin({
  name: 'harbours',
  setup: () => ({
    handlers: {
      getHarbours({ input }) {
        const { country } = input.query as { country: string }
        const harbours = rows.filter((row) => row.country === country)
        if (harbours.length === 0) throw new NotFound(`There is no harbour in ${country}.`)
        return { harbours }
      },
    },
  }),
})
