/** Finds the highest level in a CSV file that the buyer sends. */
import { definePlugin, InvalidInput, type Upload } from 'tollgate/plugin'

const invalid = (msg: string) => new InvalidInput([{ loc: ['body', 'file'], msg, type: 'value_error' }])

export default definePlugin({
  name: 'highest',
  setup: () => ({
    handlers: {
      getHighest({ input }) {
        const { file } = input.body as { file: Upload }
        const [, ...lines] = file.bytes.toString('utf8').trim().split(/\r?\n/)
        const levels = lines.map((line) => {
          const [hour = NaN, metres = NaN] = line.split(',').map(Number)
          return { hour, metres }
        })
        if (levels.length === 0) throw invalid('has no line after its header')
        const wrong = levels.findIndex(({ hour, metres }) => !Number.isFinite(hour + metres))
        if (wrong !== -1) throw invalid(`has no two numbers in line ${wrong + 2}`)
        return levels.reduce((highest, level) => (level.metres > highest.metres ? level : highest))
      },
    },
  }),
})
