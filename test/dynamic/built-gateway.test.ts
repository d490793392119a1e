/** The built gateway as a process, with a catalog and TypeScript plugins of its own. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve, sep } from 'node:path'
import { expect } from 'chai'
import { json } from '../support/agent.ts'
import { SERVICE } from '../support/catalog.ts'
import { freePort } from '../support/gateway.ts'
import { environmentIn, requireBuild, startGateway, type Started } from '../support/process.ts'
import { until } from '../support/until.ts'
import { wordPlugin, wordProduct } from './live-gateway.ts'

const root = resolve(import.meta.dirname, '../..')

/** A plugin that throws in a function of its own, below an interface that compiles to nothing. */
const THROWS = `import { type Call, definePlugin } from 'tollgate/plugin'

interface Price {
  readonly word: string
}

function priceOf(call: Call): Price {
  throw new TypeError(\`no price for \${typeof call}\`)
}

export default definePlugin({ name: 'thrower', setup: () => ({ handlers: { getWord: (call) => priceOf(call) } }) })
`
/** A plugin that computes in a worker thread. */
const WORKS = `import { type Call, definePlugin } from 'tollgate/plugin'
const sum = new URL('./sum.ts', import.meta.url)
export default definePlugin({
  name: 'adder',
  setup: ({ work }) => ({
    handlers: { getWord: async (call: Call) => ({ word: String(await work(sum, [1, 2, 3], { call })) }) },
  }),
})
`
const SUM = `import { add } from './add'
type Numbers = readonly number[]
export default function sum(numbers: Numbers): number {
  return numbers.reduce(add, 0)
}
`
/** A plugin that throws an error outside any call. */
const TIMER = `import { definePlugin } from 'tollgate/plugin'
import { InvalidInput } from '#gateway'
import { Cron } from 'croner'
export default definePlugin({ name: 'timer', setup: () => ({ handlers: { getWord() {
  setTimeout(() => {
    throw new Error('thrown from a timer')
  }, 1)
  return { word: [InvalidInput.name, typeof Cron].join() }
} } }) })
`

describe('a built gateway', () => {
  let folder: string
  let url: string
  let running: Started
  let temporary: string
  const write = (file: string, content: unknown): void => {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), typeof content === 'string' ? content : JSON.stringify(content))
  }
  const wordOrStatus = async (path: string): Promise<unknown> => {
    const answer = await fetch(url + path)
    return answer.status === 200 ? (await json(answer))['word'] : answer.status
  }
  const untilAnswers = (word: string): Promise<void> => until(async () => (await wordOrStatus('/v1/parrot')) === word)
  const messages = async (): Promise<string[]> => {
    const { mistakes } = await json(await fetch(`${url}/health`))
    return (mistakes as { message: string }[]).map(({ message }) => message)
  }
  /** Resolves with the message about code that is not served. */
  const refusalOf = async (source: string): Promise<string> => {
    write('plugins/parrot/word.ts', source)
    await until(async () => (await messages()).length > 0)
    const [message = ''] = await messages()
    expect(await wordOrStatus('/v1/parrot')).to.equal('one')
    write('plugins/parrot/word.ts', `export const word: string = 'one'`)
    await until(async () => (await messages()).length === 0)
    return message
  }
  /** Resolves with the logged stack of the error with this message. */
  const loggedStack = async (message: string): Promise<string> => {
    const lineOf = (): string | undefined =>
      running
        .output()
        .split('\n')
        .slice(0, -1)
        .find((line) => line.includes('"stack"') && line.includes(message))
    await until(() => lineOf() !== undefined)
    return (JSON.parse(lineOf() ?? '{}') as { err: { stack: string } }).err.stack
  }

  async function open(project: string): Promise<void> {
    temporary = join(folder, 'temporary')
    mkdirSync(temporary)
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    write('catalog/service.json', SERVICE)
    cpSync(join(root, 'catalog/documents.json'), join(folder, 'catalog/documents.json'))
    for (const plugin of ['parrot', 'thrower', 'adder', 'timer']) {
      const { operations, ...product } = wordProduct(plugin, { handler: 'getWord' })
      write(`catalog/${plugin}.json`, { ...product, operations: { [`${plugin}Word`]: operations.getWord } })
    }
    write('plugins/parrot/index.ts', wordPlugin('parrot'))
    write('plugins/parrot/word.ts', `export const word: string = 'one'`)
    write('plugins/thrower/index.ts', THROWS)
    write('plugins/adder/index.ts', WORKS)
    write('plugins/adder/sum.ts', SUM)
    write('plugins/adder/add.ts', 'export const add = (one: number, other: number): number => one + other')
    write('plugins/timer/index.ts', TIMER)
    const environment = { ...environmentIn(folder, port), TMPDIR: temporary }
    running = await startGateway(/is open at/, environment, project)
  }
  async function close(): Promise<void> {
    await running?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  const newFolder = (): string => realpathSync(mkdtempSync(join(tmpdir(), 'tollgate-built-')))

  describe('with TypeScript plugins outside the project', () => {
    before(async () => {
      folder = newFolder()
      await open(root)
    })
    after(close)

    it('sells them', async () => {
      expect(await wordOrStatus('/v1/parrot')).to.equal('one')
      const { products } = await json(await fetch(`${url}/health`))
      expect(products).to.have.length(7)
      expect(await messages()).to.deep.equal([])
    })

    it('serves an edit of the code without a restart', async () => {
      write('plugins/parrot/word.ts', `export const word: string = 'two'`)
      await untilAnswers('two')
      write('plugins/parrot/word.ts', `export const word: string = 'one'`)
      await untilAnswers('one')
    })

    it('keeps the last version while the code has an error, and names file, line and column of the source', async () => {
      expect(await refusalOf(`type Word = string\nexport const word: = 'one'`)).to.match(
        /^The plugin parrot does not load: Unexpected "=" \(parrot\/word\.ts:2:20\)/,
      )
      expect(await refusalOf(`type Word = string\nexport const word = ''\nthrow new Error('half done')`)).to.match(
        /does not load: half done \(word\.ts:3:7\)/,
      )
      expect(await refusalOf(`export const words = 'one'`)).to.match(/export named 'word' \(index\.ts:2\)/)
      const missing = await refusalOf(`import { lost } from './lost.ts'\nexport const word = lost`)
      expect(missing).to.match(new RegExp(`${folder}/plugins/parrot/lost\\.ts.* ${folder}/plugins/parrot/word\\.ts`))
      expect(running.output()).to.contain('Unexpected \\"=\\" (parrot/word.ts:2:20)')
    })

    it('runs context.work with a TypeScript module', async () => {
      expect(await wordOrStatus('/v1/adder')).to.equal('6')
      write('plugins/adder/add.ts', `export const add = (): number => {\n  throw new RangeError('too much')\n}`)
      await until(async () => (await wordOrStatus('/v1/adder')) === 502)
      expect(await loggedStack('too much')).to.match(/adder\/add\.ts:2:9\)?\n/)
    })

    it('logs where in the source a handler threw', async () => {
      expect(await wordOrStatus('/v1/thrower')).to.equal(502)
      const stack = await loggedStack('no price for object')
      expect(stack).to.match(/thrower\/index\.ts:8:9\)\n/)
      expect(stack).to.match(new RegExp(`${root}/gateway/[a-z-]+/[a-z-]+\\.ts:\\d+:\\d+`))
    })
  })

  describe('whose folder cannot be written to', () => {
    const copies = (): string[] => readdirSync(temporary).filter((name) => name.startsWith('tollgate-plugins-'))
    before(async () => {
      requireBuild()
      folder = newFolder()
      const project = join(folder, 'project')
      const isCopy = (path: string): boolean => path.includes(`${sep}.plugins`)
      cpSync(join(root, 'dist'), join(project, 'dist'), { recursive: true, filter: (path) => !isCopy(path) })
      for (const name of ['catalog', 'schemas', 'views', 'plugins', 'node_modules'])
        symlinkSync(join(root, name), join(project, name))
      // No folder can be made inside a file, whoever runs the tests.
      write('project/dist/.plugins', '')
      await open(project)
    })
    after(close)

    it('sells plugins from a temporary folder', async () => {
      expect(await wordOrStatus('/v1/parrot')).to.equal('one')
      expect(await wordOrStatus('/v1/adder')).to.equal('6')
      expect(running.output()).to.contain('plugin code is copied to a temporary folder')
    })

    it('serves an edit of the code without a restart', async () => {
      write('plugins/parrot/word.ts', `export const word: string = 'two'`)
      await untilAnswers('two')
    })

    it('survives an error that a plugin throws in a timer', async () => {
      expect(await wordOrStatus('/v1/timer')).to.equal('InvalidInput,function')
      expect(await loggedStack('thrown from a timer')).to.match(/timer\/index\.ts:6:11\)/)
      expect(await wordOrStatus('/v1/parrot')).to.equal('two')
    })

    it('removes the temporary folder when it is stopped', async () => {
      expect(copies()).to.have.length(1)
      await running.stop()
      expect(copies()).to.deep.equal([])
    })
  })
})
