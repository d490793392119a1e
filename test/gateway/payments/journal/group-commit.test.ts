import { expect } from 'chai'
import { type Command, createGroupCommit } from '../../../../gateway/payments/journal/group-commit.ts'

const urgent = (key: string): Command => ({ kind: 'move', key, size: 1 })
const patient = (key: string): Command => ({ kind: 'deliver', key, size: 1, canWait: true })

/** Commits that take a turn of the event loop each, and the groups that were committed. */
function recordedCommits() {
  const groups: string[] = []
  const commits = createGroupCommit<Command, string>({
    async commit(group) {
      groups.push(`${group[0]?.kind}: ${group.map(({ key }) => key).join()}`)
      await new Promise((resolve) => setImmediate(resolve))
      return group.map(({ key }) => key)
    },
    wroteNothing: () => true,
  })
  return { groups, commits }
}

describe('a group commit', () => {
  it('writes commands that can wait after the others, all at once', async () => {
    const { groups, commits } = recordedCommits()
    const written = [patient('a'), urgent('b'), patient('c'), urgent('d')].map((each) => commits.write(each))
    expect(await Promise.all(written)).to.deep.equal(['a', 'b', 'c', 'd'])
    expect(groups).to.deep.equal(['move: b,d', 'deliver: a,c'])
  })

  it('writes them at once if nothing else is to be written', async () => {
    const { groups, commits } = recordedCommits()
    await commits.write(patient('a'))
    expect(groups).to.deep.equal(['deliver: a'])
  })

  it('keeps the order of commands of one key', async () => {
    const { groups, commits } = recordedCommits()
    await Promise.all([patient('a'), urgent('a'), urgent('b'), urgent('a')].map((each) => commits.write(each)))
    expect(groups).to.deep.equal(['move: b', 'deliver: a', 'move: a', 'move: a'])
  })

  it('lets them wait for other commands only until there are 64', async () => {
    const { groups, commits } = recordedCommits()
    let isOver = false
    let number = 0
    const stream = (async () => {
      while (!isOver) await commits.write(urgent(`urgent ${(number += 1)}`))
    })()
    const first = commits.write(patient('first'))
    // Beside the stream there is always something that cannot wait.
    const others = (async () => {
      while (!isOver) await commits.write(urgent(`other ${(number += 1)}`))
    })()
    while (number < 20) await new Promise((resolve) => setImmediate(resolve))
    expect(groups.some((group) => group.startsWith('deliver'))).to.equal(false)
    const more = Array.from({ length: 63 }, (_, nth) => commits.write(patient(`more ${nth}`)))
    await Promise.all([first, ...more])
    const delivered = groups.filter((group) => group.startsWith('deliver'))
    expect(delivered.map((group) => group.split(',').length)).to.deep.equal([64])
    isOver = true
    await Promise.all([stream, others])
  })

  it('writes everything before it closes', async () => {
    const { groups, commits } = recordedCommits()
    const written = [patient('a'), urgent('b')].map((each) => commits.write(each))
    await commits.close()
    expect(groups).to.deep.equal(['move: b', 'deliver: a'])
    await Promise.all(written)
  })
})
