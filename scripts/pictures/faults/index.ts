/** A product that refuses in whichever way it is asked to, so that the pages of refusals can be looked at. */
import { type Call, definePlugin, ServiceError } from 'tollgate/plugin'

type ErrorCode = ConstructorParameters<typeof ServiceError>[0]

export default definePlugin({
  name: 'faults',
  views: new URL('views', import.meta.url),
  setup: () => ({
    handlers: {
      refuse({ input }: Call<{ params: { code: ErrorCode } }>) {
        throw new ServiceError(input.params.code)
      },
      showBroken: () => ({ nothing: null }),
    },
  }),
})
