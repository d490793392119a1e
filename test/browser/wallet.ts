import { expect } from 'chai'
import type { Page } from 'playwright-core'
import type { TypedDataDefinition } from 'viem'
import type { Service } from './service.ts'

/** Takes the place of a wallet in the browser. It passes every request to the test. */
const PROVIDER = `window.ethereum = { request: ({ method, params }) => window.walletRequest(method, params).then(({ error, result }) => {
  if (error) throw Object.assign(new Error(error.message), error)
  return result
}) }`

interface WalletRequest {
  readonly method: string
  readonly params: readonly unknown[] | undefined
}

export function wallet(running: () => Service): void {
  let service: Service
  before(() => {
    service = running()
  })

  /** Opens the price page with a scripted wallet that signs as the buyer of the sandbox. */
  async function openWithWallet({ chain = 84_532, declines = false, knows = true } = {}) {
    const { page, consoleErrors, close } = await service.open('')
    const requests: WalletRequest[] = []
    let [currentChain, isKnown] = [chain, knows]
    const answer = async (method: string, params?: readonly unknown[]): Promise<unknown> => {
      requests.push({ method, params })
      if (method === 'eth_requestAccounts') return [service.buyer.address]
      if (method === 'eth_chainId') return `0x${currentChain.toString(16)}`
      if (method === 'wallet_addEthereumChain') return null
      if (method === 'wallet_switchEthereumChain') {
        const [{ chainId }] = params as readonly [{ chainId: string }]
        currentChain = Number(chainId)
        return null
      }
      if (method !== 'eth_signTypedData_v4') throw new Error(`no ${method} here`)
      const typed = JSON.parse(params?.[1] as string) as TypedDataDefinition
      if (Number(typed.domain?.chainId) !== currentChain) throw new Error('the domain is of another chain')
      return service.buyer.signTypedData(typed)
    }
    await page.exposeFunction('walletRequest', async (method: string, params?: readonly unknown[]) => {
      if (declines && method === 'eth_signTypedData_v4') return { error: { code: 4001, message: 'User rejected.' } }
      if (method === 'wallet_addEthereumChain') isKnown = true
      if (method === 'wallet_switchEthereumChain' && !isKnown)
        return { error: { code: 4902, message: 'Unknown chain.' } }
      return { result: await answer(method, params) }
    })
    await page.addInitScript(PROVIDER)
    await page.goto(`${service.url}/pricing`)
    return { page, requests, consoleErrors, close }
  }

  const buyForm = (page: Page, address: string) => page.locator(`form.wallet-form[data-path="${address}"]`)

  it('is needed for the buy buttons to appear', async () => {
    const { page, close } = await service.visit('/pricing')
    expect(await page.locator('form.wallet-form:visible').count()).to.equal(0)
    expect(await page.locator('#wallet-none').isVisible()).to.equal(true)
    await close()
  })

  it('buys a route with one signature, and the page shows the answer and the transaction', async () => {
    const { page, requests, consoleErrors, close } = await openWithWallet()
    await service.moved()
    const form = buyForm(page, '/v1/potus/feeds')
    await form.getByRole('button').click()
    await form.locator('.answer', { hasText: 'Paid in transaction 0x' }).waitFor()
    expect(await form.locator('.answer').textContent()).to.contain('"feeds"')
    expect(requests.map(({ method }) => method)).to.deep.equal([
      'eth_requestAccounts',
      'eth_chainId',
      'eth_signTypedData_v4',
    ])
    expect(await service.moved()).to.deep.equal({ buyer: -250_000n, payee: 250_000n })
    expect(consoleErrors.filter((text) => !text.includes('402'))).to.deep.equal([])
    await close()
  })

  it('is asked to switch if it is on another chain, before it signs', async () => {
    const { page, requests, close } = await openWithWallet({ chain: 1 })
    const form = buyForm(page, '/v1/potus/archive')
    await form.getByRole('button').click()
    await form.locator('.answer', { hasText: 'Paid in transaction' }).waitFor()
    expect(requests.find(({ method }) => method === 'wallet_switchEthereumChain')?.params).to.deep.equal([
      { chainId: '0x14a34' },
    ])
    await close()
  })

  it('is given a network that it does not know', async () => {
    const { page, requests, close } = await openWithWallet({ chain: 1, knows: false })
    const form = buyForm(page, '/v1/potus/feeds')
    await form.getByRole('button').click()
    await form.locator('.answer', { hasText: 'Paid in transaction' }).waitFor()
    const [chain] = requests.find(({ method }) => method === 'wallet_addEthereumChain')?.params ?? []
    expect(chain).to.deep.include({ chainId: '0x14a34', rpcUrls: [service.sandbox.rpcUrl] })
    await close()
  })

  it('buys a plan whose token gives access to its routes', async () => {
    const { page, close } = await openWithWallet()
    const form = buyForm(page, '/v1/potus/subscribe/archive/30d')
    await form.getByRole('button').click()
    await form.locator('.answer', { hasText: 'Paid in transaction' }).waitFor()
    const text = (await form.locator('.answer').textContent()) ?? ''
    const { token } = JSON.parse(text.slice(text.indexOf('{'))) as { token: string }
    const response = await fetch(`${service.url}/v1/potus/archive`, { headers: { 'x-service-token': token } })
    expect(response.status).to.equal(200)
    expect(await response.json()).to.have.property('items')
    await close()
  })

  it('pays nothing if the buyer declines to sign', async () => {
    const { page, close } = await openWithWallet({ declines: true })
    await service.moved()
    const form = buyForm(page, '/v1/potus/feeds')
    await form.getByRole('button').click()
    await form.getByRole('alert').filter({ hasText: 'You declined' }).waitFor()
    expect(await service.moved()).to.deep.equal({ buyer: 0n, payee: 0n })
    await close()
  })

  for (const [what, address, amount] of [
    ['an answer', '/v1/potus/entities', 250_000n],
    ['the token of a plan', '/v1/potus/subscribe/archive/30d', 100_000_000n],
  ] as const)
    it(`repeats the same payment after a broken connection, pays once and gets ${what}`, async () => {
      const { page, requests, close } = await openWithWallet()
      await service.moved()
      let broken = 0
      await page.route(`**${address}`, async (route) => {
        if (route.request().headers()['payment-signature'] === undefined || broken > 0) return route.continue()
        broken += 1
        await route.fetch()
        await route.abort('connectionreset')
      })
      const form = buyForm(page, address)
      await form.getByRole('button').click()
      await form.getByRole('alert').filter({ hasText: 'The connection broke' }).waitFor()
      await form.getByRole('button').click()
      await form.locator('.answer', { hasText: 'Paid in transaction' }).waitFor()
      expect(requests.filter(({ method }) => method === 'eth_signTypedData_v4')).to.have.length(1)
      expect(await service.moved()).to.deep.equal({ buyer: -amount, payee: amount })
      await close()
    })
}
