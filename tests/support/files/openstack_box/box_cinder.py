"""cinder's own fake driver, which keeps no data, and for an image's data too: it would copy that to a disk of LVM."""

from cinder.tests.fake_driver import FakeLoggingVolumeDriver


class BoxVolumeDriver(FakeLoggingVolumeDriver):
    """What cinder.conf names."""

    def copy_image_to_volume(self, context, volume, image_service, image_id, disable_sparse=False):
        """Copy nothing."""

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        """Copy nothing."""
        return None, False
