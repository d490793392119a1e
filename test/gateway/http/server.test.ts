import { Agent, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mock } from 'node:test'
import { expect } from 'chai'
import express from 'express'
import { type ClosingServer, closeServer, createServer } from '../../../gateway/http/server.ts'

const CLIENTS = 60

describe('connections that are renewed', () => {
  let server: ClosingServer
  let agents: readonly Agent[]
  let url: string

  beforeEach(async () => {
    server = createServer(express(), {
      listener: (_request, response) => void response.end('ok'),
      closing: new AbortController(),
      maxBodyBytes: () => 1_000,
      countChunks: () => {},
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    agents = Array.from({ length: CLIENTS }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
  })
  afterEach(async () => {
    mock.restoreAll()
    for (const agent of agents) agent.destroy()
    await closeServer(server)
  })

  /** Each client calls once. Returns how many of them were told that their connection ends. */
  async function callAll(): Promise<number> {
    const told = agents.map(async (agent) => {
      const answer = await new Promise<IncomingMessage>((resolve, reject) =>
        get(url, { agent }, resolve).once('error', reject),
      )
      answer.resume()
      await new Promise((done) => answer.once('close', done))
      return answer.headers.connection === 'close'
    })
    return (await Promise.all(told)).filter(Boolean).length
  }

  it('end a few at a time, each once, and no other', async () => {
    expect(await callAll()).to.equal(0)
    let passed = 0
    const real = performance.now.bind(performance)
    mock.method(performance, 'now', () => real() + passed)
    server.renewConnections()
    const counts: number[] = []
    while (counts.reduce((sum, count) => sum + count, 0) < CLIENTS) {
      counts.push(await callAll())
      passed += 50
    }
    expect(Math.max(...counts)).to.be.at.most(CLIENTS / 2)
    expect(counts.reduce((sum, count) => sum + count, 0)).to.equal(CLIENTS)
    passed += 150
    expect(await callAll()).to.equal(0)
  })
})
