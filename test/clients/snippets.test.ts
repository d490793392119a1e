/** The code on the pages of operations does what it says: it is run as a reader would run it, against a gateway with a chain. */
import { execFile, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { until } from '../support/gateway.ts'
import { openSandboxGateway, type SandboxGateway } from '../support/sandbox.ts'

const root = resolve(import.meta.dirname, '../..')
const run = promisify(execFile)
const isInstalled = (program: string): boolean => spawnSync(program, ['--version']).status === 0
const ENTITIES: Readonly<Record<string, string>> = {
  '&quot;': '"',
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&#39;': "'",
}

/** Operations with what each of their answers holds, and their price in atomic units. */
const OPERATIONS = [
  ['a free GET', 'getRegimeSample', 'STABLE|VOLATILE', 0n],
  ['a priced GET with a query', 'getPerpFundingRates', '"symbol":"BTC', 5_000n],
  ['a priced POST', 'estimateExecutionCost', '"total_bps"', 10_000n],
] as const

describe('the code on the page of', function () {
  this.timeout(120_000)
  let shop: SandboxGateway
  let folder: string

  before(async () => {
    shop = await openSandboxGateway()
    // Packages are found from a folder of the project.
    mkdirSync(join(root, 'dist'), { recursive: true })
    folder = mkdtempSync(join(root, 'dist/snippets-'))
    await until(async () => (await fetch(`${shop.url}/v1/regime/sample`)).status === 200)
  })
  after(async () => {
    await shop.close()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Returns the code that the page shows for a language. */
  async function codeOf(operation: string, language: string): Promise<string> {
    const page = await (await fetch(`${shop.url}/docs/${operation}`, { headers: { accept: 'text/html' } })).text()
    const [, code = ''] = new RegExp(`data-code="${language}">.*?<code>([^]*?)</code>`).exec(page) ?? []
    return code.replace(/&\w+;|&#39;/g, (entity) => ENTITIES[entity] ?? entity)
  }

  for (const [what, operation, answer, price] of OPERATIONS) {
    const isFree = price === 0n

    it(`${what} ${isFree ? 'calls it' : 'gets its price'} with curl`, async function () {
      if (!isInstalled('curl')) this.skip()
      const { stdout } = await run('sh', ['-c', `${await codeOf(operation, 'curl')} -s`])
      expect(stdout).to.match(isFree ? new RegExp(answer) : /^HTTP\/1.1 402[^]*payment-required: /)
    })

    it(`${what} ${isFree ? 'calls it' : 'pays for it'} with TypeScript`, async () => {
      await shop.moved()
      const file = join(folder, `${operation}.mts`)
      writeFileSync(file, await codeOf(operation, 'TypeScript'))
      const env = { ...process.env, BUYER_KEY: shop.sandbox.buyer.privateKey }
      const { stdout } = await run(process.execPath, ['--import', 'tsx/esm', file], { cwd: root, env })
      expect(stdout).to.match(/^200 /).and.to.match(new RegExp(answer))
      expect(await shop.moved()).to.deep.equal({ buyer: -price, payee: price })
    })

    it(`${what} ${isFree ? 'calls it' : 'gets its price'} with Python`, async function () {
      if (!isInstalled('python3')) this.skip()
      const { stdout } = await run('python3', ['-c', await codeOf(operation, 'Python')])
      expect(stdout).to.match(isFree ? new RegExp(`^200 .*(?:${answer})`) : /^402 [\w+/=]{100,} /)
    })

    if (isFree) continue
    it(`${what} is a message that MCP answers with the price`, async () => {
      const body = await codeOf(operation, 'MCP')
      const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
      const reply = await fetch(`${shop.url}/mcp/all`, { method: 'POST', headers, body })
      expect(await reply.text())
        .to.contain('accepts')
        .and.to.contain(String(price))
    })
  }
})
