// One process runs them all, which is several times as fast as one each.
import './account.test';
import './answer.test';
import './bridge.test';
import './consent.test';
import './faults.test';
import './frames.test';
import './gateway.test';
import './lending.test';
import './link.test';
import './offering.test';
import './pacing.test';
import './parts.test';
import './place.test';
import './socket.test';
import './status.test';
