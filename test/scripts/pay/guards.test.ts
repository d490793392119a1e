import { expect } from 'chai'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { run } from '../../../scripts/pay/run.ts'
import { createUsdcClient } from '../../gateway/sandbox/usdc-client.ts'
import { labelled, usePay } from './setup.ts'

describe('npm run pay, to protect the buyer,', () => {
  const setup = usePay()

  it('refuses a price above the limit without signing', async () => {
    setup.seller.behaviour.price = 100_000_001n
    const { code, text } = await setup.pay('GET', '/weather')
    expect(code).to.equal(1)
    expect(text).to.contain('100.000001 USDC is above the limit of 100. Add --max 100.000001 to accept')
    setup.seller.behaviour.price = 5_000n
    expect((await setup.pay('GET', '/weather', '--max', '0.004999')).code).to.equal(1)
    expect(setup.paid()).to.deep.equal([])
    expect((await setup.pay('GET', '/weather', '--max', '0.005')).code).to.equal(0)
  })

  it('refuses an asset that is not USDC', async () => {
    setup.seller.behaviour.asset = '0x000000000000000000000000000000000000dEaD'
    const { code, text } = await setup.pay('GET', '/weather')
    expect(code).to.equal(1)
    expect(text).to.contain('0x000000000000000000000000000000000000dEaD is not USDC on base-sepolia')
    expect(setup.paid()).to.deep.equal([])
  })

  it('signs nothing in a dry run', async () => {
    const { code, text } = await setup.pay('GET', '/weather', '--dry-run')
    expect(code).to.equal(0)
    expect(text).to.contain('0.005 USDC').and.to.contain('nothing was signed')
    expect(setup.paid()).to.deep.equal([])
  })

  it('sends an access token instead of a payment, and does not pay if the token is refused', async () => {
    const { code, text } = await setup.pay('GET', '/weather', '--token', 'abc')
    expect(code).to.equal(1)
    expect(text).to.contain('402')
    expect(setup.seller.requests.map(({ headers }) => headers['x-service-token'])).to.deep.equal(['abc'])
  })

  it('pays other services only with a key, and no more than ten cents by default', async () => {
    const key = generatePrivateKey()
    const description = join(setup.folder, 'sandbox-sample', 'sandbox.json')
    const usdc = createUsdcClient(setup.sandbox.rpcUrl, setup.sandbox.settleKey)
    await usdc.write('mint', [privateKeyToAddress(key), 1_000_000n])
    rmSync(description)
    try {
      expect((await setup.pay('GET', '/weather')).text).to.contain('No sandbox was found')
      const url = `${setup.seller.base}/weather`
      expect((await setup.pay('GET', url)).text).to.contain('Not paid: give --key')
      const withoutRpc = await setup.pay('GET', url, '--key', key)
      expect(withoutRpc.code).to.equal(0)
      expect(labelled(withoutRpc.text, 'buyer')).to.equal('unknown (give --rpc)')
      const withRpc = await setup.pay(
        'GET',
        '/weather',
        '--url',
        setup.seller.base,
        '--key',
        key,
        '--rpc',
        usdc.client.chain.rpcUrls.default.http[0] as string,
      )
      expect(labelled(withRpc.text, 'buyer')).to.equal('0.995 → 0.99 USDC')
      setup.seller.behaviour.price = 100_001n
      expect((await setup.pay('GET', url, '--key', key)).text).to.contain('above the limit of 0.1.')
    } finally {
      await setup.sandbox.describe(setup.seller.base)
    }
  })

  it('explains that the gateway is not running', async () => {
    const dataDir = join(setup.folder, 'elsewhere')
    mkdirSync(join(dataDir, 'sandbox-sample'), { recursive: true })
    const buyer = { address: '0x', private_key: `0x${'1'.repeat(64)}` }
    const stopped = { base_url: 'http://127.0.0.1:9', rpc_url: 'http://127.0.0.1:9', chain_id: 84532, buyer }
    writeFileSync(join(dataDir, 'sandbox-sample', 'sandbox.json'), JSON.stringify(stopped))
    let text = ''
    expect(await run(['GET', '/x'], { dataDir, out: { write: (part) => (text += part) } })).to.equal(1)
    expect(text).to.contain('Nothing answers at http://127.0.0.1:9. Start the gateway with "npm start"')
  })

  it('explains what is wrong with a command line', async () => {
    const invalid: [string[], string][] = [
      [['GET'], 'Name one route'],
      [['GET', 'weather'], 'not a method and a path'],
      [['GET', '/x', '--max', 'ten'], '--max takes dollars'],
      [['GET', '/x', '--key', '0x12'], '--key must be'],
      [['GET', '/x', '--colour'], "Unknown option '--colour'"],
      [['GET', '/x', '--query', 'limit'], '--query takes NAME=VALUE'],
      [['POST', '/x', '--body', '@/nowhere'], 'cannot be read'],
    ]
    for (const [argv, message] of invalid) {
      const { code, text } = await setup.pay(...argv)
      expect([code, text.includes(message)], argv.join(' ')).to.deep.equal([1, true])
    }
    expect((await setup.pay('--help')).code).to.equal(0)
  })
})
