/**
 * Which operation a request is for: a tree of path segments per edition, so that a thousand routes cost what ten do.
 * Strict and case-sensitive; a parameter is exactly one segment, and a literal goes before it: "/v1/x/gold" before
 * "/v1/x/{name}".
 */
import type { Request, RequestHandler, Response } from 'express'
import type { BoundOperation, Edition } from '../editions/edition.ts'

export type OnOperation = (bound: BoundOperation, ...rest: Parameters<RequestHandler>) => void | Promise<void>

/** Takes what fits no operation, with the methods its path has; none where the path is unknown. */
export type Otherwise = (request: Request, response: Response, methods: readonly string[]) => void

interface Place {
  readonly literals: Map<string, Place>
  /** Where any one segment leads. */
  open: Place | null
  readonly byMethod: Map<string, BoundOperation>
}

const emptyPlace = (): Place => ({ literals: new Map(), open: null, byMethod: new Map() })

/** Builds the routes of an edition. Every request ends in one of the two. */
export function createRoutes(edition: Edition, onOperation: OnOperation, otherwise: Otherwise): RequestHandler {
  const root = emptyPlace()
  for (const bound of edition.bound.values()) {
    const { internal, path, method } = bound.operation
    if (!internal && path !== '') placeOf(root, path.split('/').slice(1)).byMethod.set(method, bound)
  }
  return (request, response, next) => {
    const segments = request.path.split('/').slice(1)
    const places = matching(root, segments, 0)
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const bound = places.find(({ byMethod }) => byMethod.has(method))?.byMethod.get(method)
    if (!bound) return otherwise(request, response, methodsOf(places))
    request.params = paramsOf(bound.operation.path, segments)
    return onOperation(bound, request, response, next)
  }
}

function placeOf(root: Place, segments: readonly string[]): Place {
  let place = root
  for (const segment of segments) {
    const known = segment.startsWith('{') ? place.open : place.literals.get(segment)
    const next = known ?? emptyPlace()
    if (segment.startsWith('{')) place.open = next
    else place.literals.set(segment, next)
    place = next
  }
  return place
}

/** Every place the segments lead to, the most literal first. */
function matching(place: Place, segments: readonly string[], at: number): readonly Place[] {
  const segment = segments[at]
  if (segment === undefined) return place.byMethod.size > 0 ? [place] : []
  const literal = place.literals.get(segment)
  const exact = literal ? matching(literal, segments, at + 1) : []
  if (place.open === null || segment === '') return exact
  return [...exact, ...matching(place.open, segments, at + 1)]
}

function methodsOf(places: readonly Place[]): readonly string[] {
  const methods = places.flatMap(({ byMethod }) => [...byMethod.keys()])
  return [...new Set(methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))]
}

/** The target has been checked: no segment has a broken escape. */
function paramsOf(path: string, segments: readonly string[]): Record<string, string> {
  const names = path.split('/').slice(1)
  return Object.fromEntries(
    names.flatMap((name, at) =>
      name.startsWith('{') ? [[name.slice(1, -1), decodeURIComponent(segments[at] as string)]] : [],
    ),
  )
}
