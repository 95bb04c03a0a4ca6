# syntax=docker/dockerfile:1
# One image for every app: `node dist/apps/<app>/main.js`.

FROM node:20.20-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
COPY scripts/client/package.json scripts/client/
# The compiler's own binary is an optional package; install scripts would only fetch an ffmpeg, which comes from Debian.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY apps apps
COPY lib lib
RUN npm run build && npm prune --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM node:20.20-bookworm-slim
ENV NODE_ENV=production
# tini reaps what ffmpeg may leave behind and passes signals on; Node as process 1 does neither.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ffmpeg tini \
 && rm -rf /var/lib/apt/lists/* \
 && install -d -o node -g node /data
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json ./
COPY drizzle drizzle
USER node
ENTRYPOINT ["/usr/bin/tini", "--"]
CMD ["node", "dist/apps/edge/main.js"]
