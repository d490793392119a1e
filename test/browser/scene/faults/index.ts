/** A product that fails with the error code in its path, for screenshots of the error pages. */
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
