import { expect } from 'chai'
import { v8Flags } from '../../gateway/v8-threads.ts'

describe('the flags for the threads of V8', () => {
  const byDefault = { execArgv: [], nodeOptions: '' }

  it('leave a core of each process to its event loop', () => {
    for (const [processes, cores, threads] of [
      [1, 1, 1],
      [1, 2, 1],
      [1, 4, 3],
      [1, 64, 4],
      [2, 2, 1],
      [2, 8, 3],
      [64, 8, 1],
    ] as const)
      expect(v8Flags(processes, cores, byDefault)).to.deep.equal([`--v8-pool-size=${threads}`])
  })

  it('keep those of this process', () => {
    const execArgv = ['--import', 'tsx/esm']
    expect(v8Flags(1, 2, { execArgv, nodeOptions: '' })).to.deep.equal([...execArgv, '--v8-pool-size=1'])
  })

  it('leave the number to an operator who has set it', () => {
    expect(v8Flags(1, 2, { execArgv: ['--v8-pool-size=3'], nodeOptions: '' })).to.deep.equal(['--v8-pool-size=3'])
    expect(v8Flags(1, 2, { execArgv: [], nodeOptions: '--no-warnings --v8-pool-size=2' })).to.deep.equal([])
  })
})
