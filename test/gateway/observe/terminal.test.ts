import { expect } from 'chai'
import fc from 'fast-check'
import { createLog } from '../../../gateway/observe/log.ts'
import { TerminalLog } from '../../../gateway/observe/terminal.ts'
import { ask, buy, payment, send } from '../../support/agent.ts'
import { openGateway, type TestGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

/** A log for people whose lines are kept, without their times. */
function keptLines(options: { readonly colour?: boolean; readonly isVerbose?: boolean } = {}) {
  let written = ''
  const terminal = new TerminalLog({ write: (text) => (written += text), colour: false, isVerbose: false, ...options })
  return {
    terminal,
    log: createLog('debug', { write: (line) => terminal.write(line) }),
    text: () => written,
    lines: () => written.split('\n').flatMap((line) => (line === '' ? [] : [line.replace(/^\d\d:\d\d:\d\d /, '')])),
    clear: () => (written = ''),
  }
}

describe('the log on a terminal, of a gateway that sells', () => {
  const kept = keptLines()
  let shop: TestGateway
  before(async () => {
    shop = await openGateway({}, { log: kept.log })
  })
  beforeEach(() => kept.clear())
  after(() => shop?.close())

  const settled = async (count: number): Promise<readonly string[]> => {
    await until(() => kept.lines().length >= count)
    return kept.lines()
  }

  it('has one line for a sale, with the time in UTC, the price, the payer and how long the call took', async () => {
    const before = new Date()
    expect((await buy(`${shop.url}/v1/echo/hello`, shop.wallet)).status).to.equal(200)
    const [quoted, sold, ...more] = await settled(2)
    const { address } = shop.wallet
    expect(quoted).to.equal('quoted GET /v1/echo/{word}')
    expect(sold).to.match(
      new RegExp(`^sold getEcho \\$0\\.005 to ${address.slice(0, 4)}…${address.slice(-2)}, \\d+ ms$`, 'i'),
    )
    expect(more).to.deep.equal([])
    const [time = ''] = kept.text().split(' ')
    expect(time >= before.toISOString().slice(11, 19) && time <= new Date().toISOString().slice(11, 19)).to.equal(true)
  })

  it('has a line for a sale over MCP', async () => {
    const header = await payment(`${shop.url}/v1/echo/tool`, shop.wallet)
    kept.clear()
    const params = { name: 'get_echo', arguments: { word: 'tool', payment_signature: header } }
    const headers = { accept: 'application/json, text/event-stream' }
    await ask(`${shop.url}/mcp`, {
      method: 'POST',
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
      headers,
    })
    expect((await settled(1)).map((line) => line.replace(/0x\S+/, '0x'))).to.deep.equal(['sold getEcho $0.005 to 0x'])
  })

  it('has one line for a call that failed, which says that nothing was charged and what the product threw', async () => {
    const call = { method: 'POST', body: { text: 'words of a buyer', fault: 'throw' } }
    const header = await payment(`${shop.url}/v1/echo`, shop.wallet, 2, call)
    kept.clear()
    expect((await send(`${shop.url}/v1/echo`, header, 2, call)).status).to.equal(502)
    const [failed, ...stack] = await settled(2)
    expect(failed).to.match(
      /^failed postEcho, \d+ ms: The product could not answer; nothing was charged\. \(product_failed\)$/,
    )
    expect(stack[0]).to.match(/^ {9}Error: /)
    expect(stack.slice(1).every((line) => /^ {13}at /.test(line))).to.equal(true)
    expect(kept.text()).not.to.contain('words of a buyer')
  })

  it('has one line for a payment that is refused, with the reason', async () => {
    const header = await payment(`${shop.url}/v1/echo/hello`, shop.wallet)
    kept.clear()
    expect((await send(`${shop.url}/v1/late`, header)).status).to.equal(402)
    const [refused, ...more] = await settled(1)
    expect(refused).to.match(
      /^refused getLate, \d+ ms: The payment was not accepted; nothing was charged\. .*\(payment_invalid, \w+\)$/,
    )
    expect(more).to.deep.equal([])
  })

  it('has a line for a settlement that failed', async () => {
    shop.settler.next('revert')
    await buy(`${shop.url}/v1/echo/hello`, shop.wallet)
    const refusals = () => kept.lines().filter((line) => line.startsWith('refused'))
    await until(() => refusals().length > 0)
    expect(refusals()[0]).to.match(/^refused getEcho, \d+ ms: .*nothing was charged\. \(settlement_failed, \w+\)$/)
  })

  it('says nothing about documents, pages, assets and free calls', async () => {
    for (const path of ['/pricing.json', '/openapi.json', '/', '/assets/site.css', '/v1/runs', '/v1/nothing'])
      await ask(`${shop.url}${path}`)
    kept.log.info('the end')
    expect(kept.lines()).to.deep.equal(['the end'])
  })

  it('has three lines for prices that were asked for, and counts the others', async () => {
    kept.terminal.flush()
    kept.clear()
    for (let asked = 0; asked < 8; asked += 1) await ask(`${shop.url}/v1/late`)
    kept.terminal.flush()
    const quoted = 'quoted GET /v1/late'
    expect(kept.lines()).to.deep.equal([quoted, quoted, quoted, 'quoted 5 more prices within 10 seconds'])
  })
})

describe('a line of the log on a terminal', () => {
  it('names alarms, warnings and errors, with their fields and the first lines of a stack', () => {
    const { log, lines } = keptLines()
    log.warn({ event: 'settling.impossible', about: ['base'] }, 'Nothing can be settled.')
    log.warn({ err: new Error('no route'), node: 'http://node.test' }, 'a node does not answer')
    log.info({ version: 'a1', files: 3 }, 'a new edition is served')
    const error = new Error('broken')
    error.stack = ['Error: broken', ...Array.from({ length: 20 }, (_, at) => `    at ${at}`)].join('\n')
    log.error({ err: error, job: 'prices' }, 'a job failed')
    log.debug('not shown')
    expect(lines()).to.deep.equal([
      'alarm settling.impossible: Nothing can be settled. about=["base"]',
      'warning a node does not answer: no route node=http://node.test',
      'a new edition is served version=a1 files=3',
      'error a job failed job=prices',
      '         Error: broken',
      ...[0, 1, 2, 3, 4].map((at) => `             at ${at}`),
    ])
  })

  it('is a sale only if the gateway says so, not if a plugin logs the same fields', () => {
    const { log, lines } = keptLines()
    const sale = {
      call: 'c1',
      operation: 'getGold',
      amount: '1000000',
      payer: '0x12',
      network: 'base',
      transaction: '0x',
    }
    log.child({ product: 'gold' }).info(sale, 'mine')
    expect(lines()[0]).to.match(/^mine product=gold operation=getGold/)
  })

  it('waits for the end of its call no longer than a second, and is written when the process ends', async () => {
    const { terminal, log, lines } = keptLines()
    const sale = { operation: 'getGold', amount: '1250000', payer: '0x1234ab', network: 'base', transaction: '0x' }
    log.info({ ...sale, call: 'a stream' }, 'payment settled')
    expect(lines()).to.deep.equal([])
    await until(() => lines().length > 0)
    log.info({ ...sale, call: 'the last' }, 'payment settled')
    terminal.flush()
    expect(lines()).to.deep.equal(Array.from({ length: 2 }, () => 'sold getGold $1.25 to 0x12…ab'))
  })

  it('has the time of a call whose payment settles after its answer has left', () => {
    const { log, lines } = keptLines()
    log.info({ call: 'c1', operation: 'getGold', payment: 'key' }, 'a payment was presented')
    log.info({ call: 'c1', method: 'GET', route: 'GET /v1/gold', status: 200, ms: 83.6 }, 'request')
    const sale = { operation: 'getGold', amount: '5000', payer: '0x1234ab', network: 'base', transaction: '0x' }
    log.info({ ...sale, call: 'c1' }, 'payment settled')
    expect(lines()).to.deep.equal(['sold getGold $0.005 to 0x12…ab, 84 ms'])
  })

  it('forgets calls of which it hears nothing more', () => {
    const { log, lines } = keptLines()
    const open = (call: string) => log.info({ call, operation: 'getGold', payment: call }, 'a payment was presented')
    for (let call = 0; call <= 1_000; call += 1) {
      open(String(call))
      log.info({ call: String(call), method: 'GET', route: 'GET /v1/gold', status: 200, ms: 9 }, 'request')
    }
    const sale = { operation: 'getGold', amount: '5000', payer: '0x1234ab', network: 'base', transaction: '0x' }
    log.info({ ...sale, call: '1' }, 'payment settled')
    expect(lines()).to.deep.equal(['sold getGold $0.005 to 0x12…ab, 9 ms'])
    log.info({ ...sale, call: '0' }, 'payment settled')
    expect(lines()).to.have.length(1)
  })

  it('has colours only if it may, and characters that control a terminal never', () => {
    const plain = keptLines()
    const coloured = keptLines({ colour: true })
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (text, value) => {
        for (const { log } of [plain, coloured])
          log.warn({ value, err: new Error(text) }, `\u001b]0;title\u0007${text}`)
      }),
    )
    expect(plain.text()).not.to.match(/(?!\n)[\p{Cc}\p{Cf}]/u)
    expect(coloured.text()).to.contain('\u001b[33mwarning\u001b[0m')
    expect(coloured.text().replace(/(?!\n)\p{Cc}\[\d+m/gu, '')).to.equal(plain.text())
  })
})
