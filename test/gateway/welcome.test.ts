import { expect } from 'chai'
import { welcome } from '../../gateway/process.ts'
import { openGateway, type TestGateway } from '../support/gateway.ts'

describe('what a start prints', () => {
  let open: TestGateway
  before(async () => {
    open = await openGateway()
  })
  after(() => open.close())

  /** What a sandbox with these settings prints. */
  const text = (set: Partial<TestGateway['gateway']['config']>): string => {
    const { config, settlement, current } = open.gateway
    const buyer = { address: `0x${'b2'.repeat(20)}`, privateKey: `0x${'1'.repeat(64)}` } as const
    const sandbox = { rpcUrl: 'http://127.0.0.1:9', buyer, operatorToken: 'a-token-of-this-sandbox' } as NonNullable<
      typeof settlement.sandbox
    >
    return welcome(
      { config: { ...config, ...set }, settlement: { ...settlement, sandbox }, current },
      'http://127.0.0.1:1',
      null,
    )
  }

  it('has a command to pay with that a shell understands, also for a data folder with a space', () => {
    expect(text({ dataRoot: '/srv/my data' })).to.contain("  DATA_DIR='/srv/my data' npm run pay -- GET ")
    expect(text({ dataRoot: '/srv/data' })).to.contain('  DATA_DIR=/srv/data npm run pay -- GET ')
  })

  it('has a call with a body to pay for, as a shell understands it', () => {
    expect(text({})).to.contain(`npm run pay -- POST /v1/echo --body '{"text":"hello"}'\n`)
  })

  it('says where the operator console is and what opens it, and shows no token that the operator has set', () => {
    expect(text({ operatorToken: null })).to.contain(
      '  operator http://127.0.0.1:1/operator (the token is a-token-of-this-sandbox)\n',
    )
    const set = text({ operatorToken: 'correct-horse-battery' })
    expect(set).to.contain('  operator http://127.0.0.1:1/operator (OPERATOR_TOKEN opens it)\n')
    for (const token of ['correct-horse-battery', 'a-token-of-this-sandbox']) expect(set).not.to.contain(token)
    const { gateway } = open
    expect(welcome(gateway, 'http://127.0.0.1:1', null)).to.contain('  operator off (OPERATOR_TOKEN would open it)\n')
  })

  it('names the settings that the sandbox does not use, because NETWORK was probably forgotten', () => {
    const none = { facilitatorUrls: [], rpcUrl: null, settleRpcUrl: null, settleKey: null }
    expect(text(none)).not.to.contain('not used')
    expect(text({ ...none, facilitatorUrls: ['https://facilitator.test'], rpcUrl: 'https://node.test' })).to.contain(
      'FACILITATOR_URL, RPC_URL: not used in the sandbox. Set NETWORK to take payments on a real network.',
    )
    expect(text({ ...none, settleKey: 'signer' })).to.contain('SETTLE_KEY: not used')
  })
})
