import { expect } from 'chai'
import { welcome } from '../../gateway/process.ts'
import { openGateway } from '../support/gateway.ts'

describe('what a start prints', () => {
  it('has a command to pay with that a shell understands, also for a data folder with a space', async () => {
    const { gateway, close } = await openGateway()
    try {
      const { config, settlement, current } = gateway
      const buyer = { address: `0x${'b2'.repeat(20)}`, privateKey: `0x${'1'.repeat(64)}` } as const
      const sandbox = { rpcUrl: 'http://127.0.0.1:9', buyer } as NonNullable<typeof settlement.sandbox>
      const text = (dataRoot: string): string =>
        welcome(
          { config: { ...config, dataRoot }, settlement: { ...settlement, sandbox }, current },
          'http://127.0.0.1:1',
          null,
        )
      expect(text('/srv/my data')).to.contain("  DATA_DIR='/srv/my data' npm run pay -- GET ")
      expect(text('/srv/data')).to.contain('  DATA_DIR=/srv/data npm run pay -- GET ')
    } finally {
      await close()
    }
  })
})
