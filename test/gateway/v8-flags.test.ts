import { spawnSync } from 'node:child_process'
import { expect } from 'chai'
import { v8Flags } from '../../gateway/v8-flags.ts'

const NEW_SPACE = '--min-semi-space-size=16'

describe('the flags of V8', () => {
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
      expect(v8Flags(processes, cores, byDefault)).to.deep.equal([`--v8-pool-size=${threads}`, NEW_SPACE])
  })

  it('keep those of this process', () => {
    const execArgv = ['--import', 'tsx/esm']
    expect(v8Flags(1, 2, { execArgv, nodeOptions: '' })).to.deep.equal([...execArgv, '--v8-pool-size=1', NEW_SPACE])
  })

  it('leave each to an operator who has set it', () => {
    const threads = '--v8-pool-size=3'
    expect(v8Flags(1, 2, { execArgv: [threads], nodeOptions: '' })).to.deep.equal([threads, NEW_SPACE])
    expect(v8Flags(1, 2, { execArgv: [], nodeOptions: `--no-warnings ${threads}` })).to.deep.equal([NEW_SPACE])
    for (const bound of ['--min-semi-space-size=8', '--max-semi-space-size=4']) {
      expect(v8Flags(1, 2, { execArgv: [bound], nodeOptions: '' })).to.deep.equal([bound, '--v8-pool-size=1'])
      expect(v8Flags(1, 2, { execArgv: [], nodeOptions: bound })).to.deep.equal(['--v8-pool-size=1'])
    }
  })

  it('keep the memory for new objects when a process that has nothing to do collects its garbage', () => {
    // What is made is forgotten at once, as most of a call is. What lives longer would enlarge the memory.
    const program = `
      import { getHeapSpaceStatistics } from 'node:v8'
      import { setTimeout as sleep } from 'node:timers/promises'
      await sleep(50)
      gc()
      for (let made = 0; made < 200_000; made += 1) globalThis.last = { made: [made, made + 1, made + 2] }
      const { space_size } = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')
      process.stdout.write(String(space_size / 2 ** 20))`
    const megabytesWith = (flags: readonly string[]): number => {
      const args = [...flags, '--expose-gc', '--input-type=module', '-e', program]
      return Number(spawnSync(process.execPath, args, { encoding: 'utf8' }).stdout)
    }
    expect(megabytesWith(v8Flags(1, 2, byDefault))).to.be.at.least(16)
    expect(megabytesWith([])).to.be.within(0.5, 8)
  })
})
