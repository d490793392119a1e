import { expect } from 'chai'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../gateway/sandbox/usdc-client.ts'
import { requireBuild } from '../support/process.ts'
import { labelled, usePay } from './pay/setup.ts'

describe('npm run pay', () => {
  const setup = usePay()

  it('shows price, payment, answer, receipt and both balances, in this order', async () => {
    const { code, text } = await setup.pay('GET', '/weather')
    expect(code).to.equal(0)
    const labels = [...text.matchAll(/^([a-z]+) {2,}/gm)].map((match) => match[1])
    expect(labels).to.deep.equal('price payee for signed status answer receipt buyer payee'.split(' '))
    expect(labelled(text, 'price')).to.equal('0.005 USDC on base-sepolia (402, x402 v2)')
    expect(labelled(text, 'for')).to.equal('The weather.')
    expect(text).to.contain(setup.sandbox.payTo).and.to.contain('"sky": "clear"')
    expect([...setup.seller.settled.values()]).to.deep.equal([labelled(text, 'receipt')])
    expect(labelled(text, 'buyer')).to.equal('10000 → 9999.995 USDC')
    expect(text).to.match(/^payee +0 → 0\.005 USDC$/m)
  })

  it('pays with x402 v2, repeating the accepted entry and the declared extensions, with a payment identifier if required', async () => {
    setup.seller.behaviour.extensions = {
      'payment-identifier': { info: { required: true } },
      other: { info: { a: 1 } },
    }
    expect((await setup.pay('GET', '/weather')).code).to.equal(0)
    const [{ headers, payment } = expect.fail()] = setup.paid()
    expect(headers).to.have.property('payment-signature')
    expect(payment?.x402Version).to.equal(2)
    expect(payment?.accepted).to.include({ network: 'eip155:84532', amount: '5000', payTo: setup.sandbox.payTo })
    expect(payment?.extensions?.['other']).to.deep.equal({ info: { a: 1 } })
    expect(payment?.extensions?.['payment-identifier']?.info?.id).to.match(/^[\w-]{16,128}$/)
  })

  it('pays with x402 v1 if asked to, or if nothing else is offered', async () => {
    expect((await setup.pay('GET', '/weather', '--v1')).code).to.equal(0)
    setup.seller.behaviour.versions = [1]
    expect((await setup.pay('GET', '/weather')).code).to.equal(0)
    setup.seller.behaviour.versions = [2]
    expect((await setup.pay('GET', '/weather', '--v1')).text).to.contain('x402 v2')
    const envelopes = setup
      .paid()
      .map(({ headers, payment }) => [headers['x-payment'] !== undefined, payment?.x402Version, payment?.network])
    expect(envelopes).to.deep.equal([
      [true, 1, 'base-sepolia'],
      [true, 1, 'base-sepolia'],
      [false, 2, undefined],
    ])
  })

  it('calls a free route without paying', async () => {
    const { code, text } = await setup.pay(
      'GET',
      '/free',
      '--query',
      'limit=3',
      '--query',
      'a=b c',
      '--header',
      'x-one: 1',
    )
    expect(code).to.equal(0)
    expect(text).to.contain('"sky": "clear"').and.not.to.contain('price')
    expect(setup.seller.requests.map(({ url, headers }) => [url, headers['x-one']])).to.deep.equal([
      ['/free?limit=3&a=b+c', '1'],
    ])
  })

  it('shows status, receipt and balances of a paid stream, and then its events as they come', async () => {
    setup.seller.behaviour.interfere = (_attempt, response) => {
      const receipt = { success: true, transaction: [...setup.seller.settled.values()].at(-1) }
      const header = Buffer.from(JSON.stringify(receipt)).toString('base64')
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'payment-response': header })
      response.write('id: 1\ndata: {}\n\n')
      setTimeout(() => response.end('id: 2\ndata: {}\n\n'), 50)
      return true
    }
    const { code, text } = await setup.pay('GET', '/weather', '--header', 'accept: text/event-stream')
    expect(code).to.equal(0)
    const labels = [...text.matchAll(/^([a-z]+) {2,}/gm)].map((match) => match[1])
    expect(labels).to.deep.equal('price payee for signed status receipt buyer payee events'.split(' '))
    expect(text.endsWith('id: 1\ndata: {}\n\nid: 2\ndata: {}\n\n')).to.equal(true)
  })

  it('sends the same body with the first request and with the payment', async () => {
    expect((await setup.pay('POST', '/weather', '--body', '{"place":"Rome"}')).code).to.equal(0)
    expect(setup.seller.requests.map(({ body, headers }) => [body, headers['content-type']])).to.deep.equal([
      ['{"place":"Rome"}', 'application/json'],
      ['{"place":"Rome"}', 'application/json'],
    ])
  })

  it('sends a file as a form field only with the payment', async () => {
    const file = join(setup.folder, 'ledger.csv')
    writeFileSync(file, 'a,b\n1,2\n')
    expect((await setup.pay('POST', '/weather', '--form', `file=@${file}`, '--form', 'n=10')).code).to.equal(0)
    const [unpaid, paid] = setup.seller.requests
    expect(unpaid?.body).to.equal('')
    expect(paid?.headers['content-type']).to.match(/^multipart\/form-data/)
    expect(paid?.body).to.contain('filename="ledger.csv"').and.to.contain('text/csv').and.to.contain('a,b\n1,2\n')
  })

  it('repeats the same payment while its settlement is pending', async () => {
    setup.seller.behaviour.interfere = (attempt, response) => {
      if (attempt > 2) return false
      const body = { error: 'settlement_pending', code: 'settlement_pending', retry: 'same_payment' }
      response.writeHead(503, { 'retry-after': '0', 'content-type': 'application/json' }).end(JSON.stringify(body))
      return true
    }
    const { code, text } = await setup.pay('GET', '/weather')
    expect(code).to.equal(0)
    expect(text).to.contain('the settlement is pending')
    expect(setup.paid()).to.have.length(3)
    expect(new Set(setup.paid().map(({ headers }) => headers['payment-signature'])).size).to.equal(1)
  })

  it('repeats the same payment if the connection is lost before or during the answer', async () => {
    setup.seller.behaviour.interfere = (attempt, response) => {
      if (attempt > 2) return false
      if (attempt === 2) response.writeHead(200, { 'content-length': '100' }).write('{')
      setImmediate(() => response.destroy())
      return true
    }
    const { code, text } = await setup.pay('GET', '/weather')
    expect(code).to.equal(0)
    expect(text).to.contain('the connection was lost')
    expect(new Set(setup.paid().map(({ payment }) => payment?.payload.authorization.nonce)).size).to.equal(1)
    expect(labelled(text, 'buyer')).to.match(/USDC$/)
    expect(setup.seller.settled.size).to.equal(1)
  })

  it('prints a header that repeats the call if the outcome stays unknown, and the repeated call gets the answer', async () => {
    setup.seller.behaviour.interfere = (_, response) => {
      response.destroy()
      return true
    }
    const { code, text } = await setup.pay('GET', '/weather')
    expect(code).to.equal(1)
    expect(text).to.contain('Do not pay again')
    const header = text.match(/--header '(.+)'/)?.[1] as string
    setup.seller.behaviour.interfere = null
    const repeated = await setup.pay('GET', '/weather', '--header', header)
    expect(repeated.code).to.equal(0)
    expect(repeated.text).to.contain('"sky": "clear"')
    expect(setup.seller.settled.size).to.equal(1)
  })

  it('sends an Idempotency-Key with a payment of x402 v1, which names no purchase itself, unless the buyer gave one', async () => {
    setup.seller.behaviour.interfere = (_, response) => {
      response.destroy()
      return true
    }
    const { text } = await setup.pay('GET', '/weather', '--v1')
    const keys = new Set(setup.paid().map(({ headers }) => headers['idempotency-key']))
    expect([...keys][0]).to.match(/^[0-9a-f]{32}$/)
    expect(keys.size).to.equal(1)
    expect(text).to.contain(`' --header 'Idempotency-Key:${String([...keys][0])}'`)
    setup.seller.behaviour.interfere = null
    await setup.pay('GET', '/weather', '--v1', '--header', 'idempotency-key: of-the-buyer-1234')
    expect(setup.paid().at(-1)?.headers['idempotency-key']).to.equal('of-the-buyer-1234')
    await setup.pay('GET', '/weather')
    expect(setup.paid().at(-1)?.headers).to.not.have.property('idempotency-key')
  })

  it('prints one JSON object with the full answer for --json', async () => {
    setup.seller.behaviour.answer = Array.from({ length: 500 }, (_, row) => row)
    const { code, text } = await setup.pay('GET', '/weather', '--json')
    expect(code).to.equal(0)
    const report = JSON.parse(text) as Record<string, unknown>
    expect(report).to.have.keys('request', 'offer', 'payment', 'status', 'answer', 'receipt', 'balances')
    expect(report['answer']).to.deep.equal(setup.seller.behaviour.answer)
    setup.seller.behaviour.price = 10n ** 12n
    expect(JSON.parse((await setup.pay('GET', '/weather', '--json')).text))
      .to.have.property('error')
      .that.contains('limit')
  })

  it('shortens a long answer on the terminal, and says by how much', async () => {
    setup.seller.behaviour.answer = Array.from({ length: 500 }, (_, row) => row)
    const { text } = await setup.pay('GET', '/weather')
    expect(text).to.contain('… 462 more lines (all with --json)')
    expect(text.split('\n').length).to.be.below(60)
  })

  it('prints no colours if the output is not a terminal', async () => {
    const env = { ...process.env, DATA_DIR: setup.folder }
    requireBuild()
    const argv = ['scripts/tollgate.mjs', 'pay', 'GET', '/weather']
    const { stdout } = await promisify(execFile)(process.execPath, argv, { cwd: ROOT, env })
    expect(stdout).to.contain('status    200 OK').and.not.to.contain('\u001b')
    const refused = promisify(execFile)(process.execPath, [...argv, '--max', '0'], { cwd: ROOT, env })
    expect(await refused.catch((error: { code: number }) => error.code)).to.equal(1)
  })
})
