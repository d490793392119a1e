import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { expect } from 'chai'
import { RateLimited } from '../../../gateway/errors.ts'
import type { CallerAddress } from '../../../gateway/http/caller-address.ts'
import { StreamPlaces } from '../../../gateway/http/stream-places.ts'

describe('the places of streams', () => {
  const HERE: CallerAddress = { address: '127.0.0.1', isKnown: true, isShared: false }
  const newResponse = (): ServerResponse => new ServerResponse(new IncomingMessage(new Socket()))

  it('are at most a tenth for one token, and free again once a stream has ended', () => {
    const places = new StreamPlaces('event', 20)
    const [first, second] = [newResponse(), newResponse()]
    for (const response of [first, second]) places.take(response, HERE, 'one')
    places.take(first, HERE, 'one')
    expect(() => places.take(newResponse(), HERE, 'one')).to.throw(
      RateLimited,
      /^This access token has 2 open event streams/,
    )
    places.take(newResponse(), HERE, 'other')
    first.emit('close')
    places.take(newResponse(), HERE, 'one')
    for (let open = 3; open < 20; open++) places.take(newResponse(), HERE, null)
    expect(() => places.take(newResponse(), HERE, null)).to.throw(RateLimited, /^Too many open event streams/)
    second.emit('close')
    places.take(newResponse(), HERE, null)
  })
})
