"""A mechanism driver of neutron's ML2 without an agent: every port binds at once, to a Linux bridge.

No driver of Debian's packages binds a port where no agent runs, and nova then refuses the server.
"""

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api


class BoxMechanismDriver(api.MechanismDriver):
    """What the entry point `box` names."""

    def initialize(self):
        """Need nothing."""

    def bind_port(self, context):
        """Bind to the first segment; a flat network is the bridge of its name."""
        for segment in context.segments_to_bind:
            details = {portbindings.CAP_PORT_FILTER: True}
            if segment[api.NETWORK_TYPE] == constants.TYPE_FLAT:
                details["bridge_name"] = segment[api.PHYSICAL_NETWORK][:15]
            state = constants.PORT_STATUS_ACTIVE
            context.set_binding(segment[api.ID], portbindings.VIF_TYPE_BRIDGE, details, status=state)
            return
